// The C interface of our C++ code, which provides libtorch functions that tch lacks. Every function
// that can fail returns null, or an error message to be freed with tessera_free_text. No exceptions
// escape.
#pragma once

#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include <c10/util/Exception.h>

namespace tessera {

inline char* text(const std::string& string) {
  char* copy = static_cast<char*>(std::malloc(string.size() + 1));
  if (copy != nullptr) {
    std::memcpy(copy, string.c_str(), string.size() + 1);
  }
  return copy;
}

// Runs code that may throw, and returns its error message or null.
template <typename Body>
char* guarded(Body&& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (const c10::Error& error) {
    return text(error.what_without_backtrace());
  } catch (const std::exception& error) {
    return text(error.what());
  } catch (...) {
    return text("unknown C++ exception");
  }
}

}  // namespace tessera
