package run

import (
	"strings"
	"testing"
)

// TestTooFewFiles checks that a limit of open files with which the controller
// would start and answer nothing is refused with the remedy.
func TestTooFewFiles(t *testing.T) {
	for limit, ok := range map[uint64]bool{40: false, 64: false, 255: false, 256: true, 1024: true} {
		err := checkFiles(limit)
		if ok != (err == nil) {
			t.Errorf("%d files: %v", limit, err)
		}
		if err != nil && !strings.Contains(err.Error(), "ulimit -n") {
			t.Errorf("%d files: no remedy in %q", limit, err)
		}
	}
}
