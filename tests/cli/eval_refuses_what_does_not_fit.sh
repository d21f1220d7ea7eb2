. "$(dirname "$0")/lib.subr"

printf '%s,7\n' "$FIXTURES/good/a.png" > list.csv
refuses "found nothing" eval --target "$FIXTURES/tiny" --methods random --out out_folder
refuses "gradcam" eval --target "$FIXTURES/tiny" --data list:list.csv --methods gradcm --out out_folder
refuses "legrad" eval --target "$FIXTURES/tiny" --data list:list.csv --methods legrad:layers=9 --out out_folder
refuses "--explainer" eval --target "$FIXTURES/tiny" --data list:list.csv --methods aha --out out_folder
refuses "deletion" eval --target "$FIXTURES/tiny" --data list:list.csv --methods random --metrics deltion --out out_folder
refuses "equations" eval --target "$FIXTURES/tiny" --data list:list.csv --methods random --protocol equation --out out_folder
refuses "label 7" eval --target "$FIXTURES/tiny" --data list:list.csv --methods random --class truth --out out_folder
