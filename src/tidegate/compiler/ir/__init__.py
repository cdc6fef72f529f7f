"""LLVM IR: made by clang, read through llvmlite, inlined into main."""
