/* LEVELDB_EXPORT, which programs may use: the library shows its functions without it. */

#ifndef TERRACE_LEVELDB_EXPORT_H
#define TERRACE_LEVELDB_EXPORT_H

#ifndef LEVELDB_EXPORT
#define LEVELDB_EXPORT
#endif

#endif
