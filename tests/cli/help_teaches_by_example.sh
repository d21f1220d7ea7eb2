. "$(dirname "$0")/lib.subr"

expect 0 --help
says "aha classify --target"
says "aha COMMAND --help"
expect 0 classify --help
says "Examples:"
says "--topk"
expect 0 --version
says "aha 0."
refuses "--help" 
