//===- Sanitizers.cpp - What ThreadSanitizer cannot see -------------------===//
//
// oneDNN is not instrumented. Equal primitives of several ranks share a
// description from its cache, which it guards itself: what we read of it was
// written by another thread, with no synchronisation that is seen.
//
//===----------------------------------------------------------------------===//

#ifdef __SANITIZE_THREAD__
extern "C" const char *__tsan_default_suppressions();
extern "C" const char *__tsan_default_suppressions() {
  return "race:ax::rt::dnnlFormatKey\n"
         "race:ax::rt::DnnlOp::\n"
         "race:libdnnl\n";
}
#endif
