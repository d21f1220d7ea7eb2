# Installed under DESTDIR, moved elsewhere, found with find_package and with pkg-config, from C++ and from C.
. "$(dirname "$0")/lib.subr"

DESTDIR="$WORK/stage" cmake --install "$BUILD" --prefix /opt/aha >/dev/null
mv stage/opt/aha moved
aha="$WORK/moved"
grep -rlF -e "$SOURCE" -e "$WORK" -e /opt/aha moved/lib/cmake moved/lib/pkgconfig moved/include && fail "expected no place of this machine"
explains "$aha"

cmake -S "$SOURCE/tests/install/consumer" -B consumer -DAHA_EXAMPLES="$SOURCE/examples" -DCMAKE_PREFIX_PATH="$aha" -DCMAKE_BUILD_TYPE=Release >log 2>&1 ||
  { cat log; fail "expected find_package(aha) to work"; }
cmake --build consumer >log 2>&1 || { cat log; fail "expected the project to build"; }
photo=images/00000_cat.png

consumer/from_c cifar10-vit8 $photo map.png >out
grep -q '^class cat, probability 0[.]' out && grep -q '^map of 32 x 32, ' out || { cat out; fail "expected a map from C"; }
[ "$(head -c 4 map.png | tail -c 3)" = PNG ] || fail "expected a picture"
consumer/from_cpp cifar10-vit8 $photo >out
grep -q '^ins-del of gradient: ' out || { cat out; fail "expected two methods from C++"; }
code=0
consumer/from_cpp cifar10-vit9 $photo 2>err || code=$?
[ $code -eq 2 ] && grep -q "cifar10-vit8" err || { cat err; fail "expected the kind and the words of an unknown model"; }

# Rounding, traps, threads and handlers of the program are its own; no result depends on them. Nor is a word of ours on its output.
for mode in plain upward traps; do
  consumer/host $mode cifar10-vit8 $photo >$mode 2>err || { cat err; fail "expected the program's state to stay ($mode)"; }
  [ -s err ] && { cat err; fail "expected a quiet session to be quiet ($mode)"; }
  cmp -s plain $mode || fail "expected the same result with rounding or traps as without ($mode)"
done

# A variable that the user has set is the user's: no warning about it.
OPENBLAS_CORETYPE=Haswell consumer/from_c cifar10-vit8 $photo map.png >out 2>err
grep -q OpenBLAS out err && fail "expected no warning about what the user has chosen"

# OpenBLAS was there first, with too old a core: said once.
cat >late.c <<'C'
#define _GNU_SOURCE
#include <aha/aha_c.h>
#include <dlfcn.h>
#include <stdlib.h>
#define CALL(name) ((__typeof__(&name))dlsym(library, #name))
int main(int argc, char** argv) {
  const char* const loud[] = {"quiet", "false", NULL};
  aha_session *one = 0, *two = 0;
  aha_model* model = 0;
  void* library;
  setenv("OPENBLAS_CORETYPE", "Nehalem", 1);
  if (!dlopen("libopenblas.so.0", RTLD_NOW | RTLD_GLOBAL)) return 77;
  unsetenv("OPENBLAS_CORETYPE");
  library = dlopen(argv[1], RTLD_NOW);
  return !library || CALL(aha_open)(loud, &one) || CALL(aha_open)(loud, &two) || CALL(aha_load)(one, argv[2], NULL, &model) ||
         CALL(aha_load)(two, argv[2], NULL, &model) || argc != 3;
}
C
cc -I"$aha/include" -o late late.c -ldl
code=0
(unset OPENBLAS_CORETYPE AHA_TUNING; ./late "$aha/lib/libaha.so.0" cifar10-vit8) >out 2>err || code=$?
if [ $code -eq 77 ] || ! grep -q avx2 /proc/cpuinfo; then
  echo "not tried: a warning about OpenBLAS (it is not here, or this CPU has no AVX2)"
else
  [ $code -eq 0 ] && [ ! -s out ] && [ "$(grep -c '^aha: OpenBLAS was loaded before aha and runs its Nehalem core' err)" -eq 1 ] ||
    { cat out err; fail "expected one warning on stderr about OpenBLAS's core"; }
fi

# Loaded by a name that is relative to a folder which is left before the first call.
cat >relative.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
  void* library = dlopen("../moved/lib/libaha.so.0", RTLD_NOW);
  int (*open)(const char* const*, void**) = library ? (int (*)(const char* const*, void**))dlsym(library, "aha_open") : 0;
  void* session = 0;
  return !open || chdir("/") != 0 || open(0, &session) != 0;
}
C
cc -o relative relative.c -ldl
(cd images && ../relative) || fail "expected a library loaded by a relative name to find its core"

cmake -S "$SOURCE/tests/install/c_only" -B c_only -DAHA_EXAMPLES="$SOURCE/examples" -DCMAKE_PREFIX_PATH="$aha" >log 2>&1 && cmake --build c_only >>log 2>&1 ||
  { cat log; fail "expected a project without C++ to build"; }
cmake -S "$SOURCE/tests/install/consumer" -B refused -DAHA_EXAMPLES="$SOURCE/examples" -Daha_DIR="$aha/lib/cmake/aha" -DCMAKE_PROJECT_consumer_INCLUDE="$SOURCE/tests/install/newer.cmake" \
  >log 2>&1 && fail "expected a newer minor version to be refused"
grep -q 'ahaConfig.cmake, version: 0[.]' log || { cat log; fail "expected the version to be the reason"; }

export PKG_CONFIG_PATH="$aha/lib/pkgconfig"
cc -o by_pkg_config "$SOURCE/examples/04_from_c.c" $(pkg-config --cflags --libs aha) -Wl,-rpath,"$aha/lib"
./by_pkg_config cifar10-vit8 $photo map.png >out
grep -q '^class cat' out || fail "expected a program built with pkg-config to run"
[ "$(pkg-config --modversion aha)" = "$("$aha/bin/aha" --version | cut -d' ' -f2)" ] || fail "expected one version"
