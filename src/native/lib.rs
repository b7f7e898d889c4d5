//! Contains our C++ code, which the build script compiles. The library `tessera` declares its
//! functions where it calls them.
