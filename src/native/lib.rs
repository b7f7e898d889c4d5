//! Contains our C++ code, which the build script compiles. The library `tessera` declares the C++
//! functions where it calls them.
