package get

import (
	"errors"
	"testing"
)

// An error of a switch names it once.
func TestOfSwitch(t *testing.T) {
	for text, want := range map[string]string{
		"it has not answered within 5s": "switch 0000000000000099: it has not answered within 5s",
		"unknown switch 0000000000000099; weft get switches lists those that have connected": "unknown switch 0000000000000099; weft get switches lists those that have connected",
		"switch 0000000000000099: refused":                                                   "switch 0000000000000099: refused",
		"switch 0000000000000001 is its master":                                              "switch 0000000000000099: switch 0000000000000001 is its master",
	} {
		if got := ofSwitch("0000000000000099", errors.New(text)).Error(); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
