. "$(dirname "$0")/lib.subr"

expect 0 serve --api-markdown
cmp -s out "$HERE/../../docs/http_api.md" || fail "docs/http_api.md differs from the routes: run make docs"
