# Unpacked into an empty root, the program explains; the packages name the libraries they need.
. "$(dirname "$0")/lib.subr"
needs dpkg-deb dpkg-shlibdeps file

cpack --config "$BUILD/CPackConfig.cmake" -B "$WORK/packages" -D CPACK_COMPONENTS_ALL="program;dev" -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip >log 2>&1 ||
  { cat log; fail "expected packages"; }
mkdir root
for package in packages/*.deb; do dpkg-deb -x "$package" root; done
ls packages
explains "$WORK/root/usr"
for file in include/aha/aha.h lib/libaha.so lib/cmake/aha/ahaConfig.cmake lib/pkgconfig/aha.pc; do
  [ -s "root/usr/$file" ] || fail "expected $file"
done

aha=$(echo packages/aha_*.deb) dev=$(echo packages/libaha-dev_*.deb)
dpkg-deb -f "$aha" Depends >depends
for needed in libtorch libopenblas libc6 libgomp; do grep -q "$needed" depends || { cat depends; fail "expected $needed among what aha needs"; }; done
dpkg-deb --ctrl-tarfile "$aha" | tar -xO ./shlibs | grep -q '^libaha 0 aha' || fail "expected others to learn which package has libaha.so.0"
dpkg-deb -f "$dev" Depends | grep -q "^aha (= " || fail "expected libaha-dev to need this very version of aha"
dpkg-deb -c "$aha" | grep -q 'usr/include\|libaha[.]so ->' && fail "expected what only developers need in libaha-dev"
dpkg-deb -c "$aha" | grep -v ' root/root ' && fail "expected files of root"
dpkg-deb -c "$aha" | awk '$1 !~ /^(drwxr-xr-x|-rw-r--r--|-rwxr-xr-x|lrwxrwxrwx)$/' | grep . && fail "expected the usual permissions"
[ "$(stat -c %s "$aha")" -lt 40000000 ] || fail "expected less than 40 MB"
