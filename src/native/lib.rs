//! Holds our C++, which the build script compiles. Its functions are declared where they are
//! called, in the library `tessera`.
