package ashlar_test

import (
	"os"
	"testing"

	"ashlar"
)

func TestMain(m *testing.M) {
	ashlar.Reexec()
	os.Exit(m.Run())
}
