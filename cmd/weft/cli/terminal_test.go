package cli

import (
	"os"
	"testing"
)

// TestTerminal: a device is no terminal because it is read by characters.
func TestTerminal(t *testing.T) {
	for _, name := range []string{os.DevNull, "/dev/full"} {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if Terminal(f) {
			t.Errorf("%s is a terminal", name)
		}
	}
}
