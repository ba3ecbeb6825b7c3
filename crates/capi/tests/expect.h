/* Checks for tests in C and C++: a program that fails says where, and ends with status 1. */

#ifndef TERRACE_TESTS_EXPECT_H
#define TERRACE_TESTS_EXPECT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                                              \
    do {                                                                               \
        if (!(condition)) {                                                            \
            fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #condition);   \
            exit(1);                                                                   \
        }                                                                              \
    } while (0)

#endif
