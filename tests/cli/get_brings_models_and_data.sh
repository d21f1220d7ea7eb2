. "$(dirname "$0")/lib.subr"

export AHA_CACHE="$WORK/cache"
refuses "resnet50-imagenet" get resnet51
refuses "cifar10" data get cifar11
refuses "aha get NAME" get one two
refuses "aha get resnet50-imagenet" classify --target resnet50-imagenet "$FIXTURES/tiny"
refuses "aha get hiera-tiny" classify --target hiera-tiny "$FIXTURES/tiny"
expect 0 get --help
says "resnet50-imagenet"

# No network: npm fails. No npm at all. One line each, nothing left behind.
mkdir bin
printf '#!/bin/sh\necho "npm ERR! request failed, reason: getaddrinfo ENOTFOUND" >&2\nexit 1\n' > bin/npm
chmod +x bin/npm
for words in "get resnet50-imagenet" "data get resnet50-imagenet" "get cifar10" "get hiera-tiny"; do
  code=0
  PATH="$WORK/bin:$PATH" "$AHA" $words >out 2>err </dev/null || code=$?
  [ "$code" -eq 1 ] || fail "aha $words without network: expected exit code 1, found $code"
  [ ! -s out ] || fail "aha $words without network: expected nothing on stdout"
  grep -q "^aha: cannot fetch .*ENOTFOUND.*--from PATH" err || fail "aha $words: expected what npm said and --from"
done
[ -z "$(find cache -type f)" ] || fail "expected nothing in the cache, found $(find cache -type f)"

# An archive that is not the known one is not kept.
printf '#!/bin/sh\ncp "$0" "$4/other.tgz"\n' > bin/npm
code=0
PATH="$WORK/bin:$PATH" "$AHA" get resnet50-imagenet >out 2>err </dev/null || code=$?
[ "$code" -eq 1 ] || fail "another archive: expected exit code 1, found $code"
grep -q "sha256" err || fail "expected the sha256 on stderr"
[ -z "$(find cache -type f)" ] || fail "expected nothing in the cache, found $(find cache -type f)"
