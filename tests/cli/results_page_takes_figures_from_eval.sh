. "$(dirname "$0")/lib.subr"

# scripts/results_page.py: tables of a page come from what aha eval wrote, the text around them stays.
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 0; }
mkdir photos tables && cp "$FIXTURES/good/a.png" photos/a.png && cp "$FIXTURES/good/b.jpg" photos/b.jpg
printf 'path,label\nphotos/a.png,1\nphotos/b.jpg,2\n' > list.csv
eval="eval --target $FIXTURES/tiny --data list:list.csv --timing-runs 0"
expect 0 $eval --methods random,chefer --class both --out tables/two
expect 0 $eval --methods random,chefer,gradient --limit 1 --out tables/one
{
  echo "# Page"
  for table in "nested two one" "wide one" "references one" "classes two"; do printf '<!-- %s -->\nold 0.999\n<!-- end -->\nbetween\n' "$table"; done
} >page.md
python3 "$HERE/../../scripts/results_page.py" tables page.md || fail "expected the page"
cp page.md once.md
python3 "$HERE/../../scripts/results_page.py" tables page.md && cmp page.md once.md || fail "expected the same page again"
! grep -q "old 0.999" page.md || fail "expected the old table to be gone"
[ "$(grep -c between page.md)" -eq 4 ] || fail "expected the text to stay"
python3 - <<'PY' || fail "expected the figures of results.csv"
import csv
page = open("page.md").read()
for name, count in (("two", 4), ("one", 3)):
    rows = [r for r in csv.DictReader(open(f"tables/{name}/results.csv")) if r["metric"] == "ins-del"]
    assert len(rows) == count, rows
    for r in rows:
        assert f"{float(r['mean']):.3f}" in page, r
chefer = next(r for r in csv.DictReader(open("tables/two/results.csv")) if r["method"] == "chefer" and r["metric"] == "deletion" and r["class"] == "predicted")
assert f"| chefer | 2 | {float(chefer['mean']):.3f} [{float(chefer['low']):.3f}, {float(chefer['high']):.3f}] |" in page
assert "| gradient | 1 |" in page and "deletion ↓, truth" in page
PY
if python3 "$HERE/../../scripts/results_page.py" tables >/dev/null 2>&1; then fail "expected a refusal without a page"; fi
