// For LevelDB's own sources: they include this, and what is run uses nothing of it.
#include "leveldb/iterator.h"
