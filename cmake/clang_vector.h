// Read first by clang, for `make tidy`. libtorch 1.13 has vectors of types that are not complete yet, and
// clang 14 instantiates the members of a constexpr std::vector too early for that. Here the vector is not
// constexpr.
#pragma once

#include <bits/stl_algobase.h>

#include <memory>
#include <string>

#undef _GLIBCXX20_CONSTEXPR
#define _GLIBCXX20_CONSTEXPR
#define __fill_a1 fill_bits_not_constexpr  // of vector<bool>, declared constexpr above; parsed, never linked
#include <vector>
#undef __fill_a1
#undef _GLIBCXX20_CONSTEXPR
#define _GLIBCXX20_CONSTEXPR constexpr
