# Reads `go test -v` and prints a line a package, what was skipped and why, and the
# output of what failed.
/^=== (RUN|PAUSE|CONT|NAME)/ { next }
/^ *--- PASS/ { passed++; next }
/^ *--- SKIP/ { skipped++; why[last]++; example[last] = $3; next }
/^ *--- FAIL/ { failed++; print; next }
/_test\.go:[0-9]+: / { last = $0; sub(/^ +[^ ]+_test\.go:[0-9]+: /, "", last); held = held $0 "\n"; next }
/^(ok|FAIL|panic:)/ { print; if ($1 != "ok") printf "%s", held; held = ""; next }
/no test files|^PASS$|^testing: warning/ { next }
/^(goroutine|\t|created by|exit status)|WARNING: DATA RACE|panic|vet:|^#|\.go:[0-9]+/ { print; next }
{ held = held $0 "\n" }
END {
	for (reason in why) printf "skipped %d: %s (%s)\n", why[reason], reason, example[reason]
	printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
}
