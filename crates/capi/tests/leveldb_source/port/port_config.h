// For LevelDB's own helpers: what this machine has, as far as they need it. No library for checksums or compression is used.

#ifndef TERRACE_TESTS_PORT_CONFIG_H
#define TERRACE_TESTS_PORT_CONFIG_H

#define HAVE_FDATASYNC 1
#define HAVE_FULLFSYNC 0
#define HAVE_O_CLOEXEC 1
#define HAVE_CRC32C 0
#define HAVE_SNAPPY 0

#endif
