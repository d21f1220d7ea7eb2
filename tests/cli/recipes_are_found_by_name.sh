. "$(dirname "$0")/lib.subr"

# From any folder, by name or as the documentation has it; the recipe is read, so that what is missing is --out.
for recipe in cifar10-explainer cifar10-explainer.toml recipes/cifar10-explainer.toml; do
  refuses "--out" train --config "$recipe" --target "$FIXTURES/tiny" --data cifar10:sample
done
refuses "options of aha fit" fit --config cifar10-explainer --out run
refuses "did you mean 'cifar10-explainer'" train --config cifar10-explaner --out run
# A file of the user's own is first.
printf 'nonsense = 1\n' >cifar10-explainer
refuses "nonsense" train --config cifar10-explainer --out run
expect 0 help recipes
says "imagenet-vit-ti-16"
