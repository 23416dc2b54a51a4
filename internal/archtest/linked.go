package archtest

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// laboratory is what only the module bench may link: itself, and what draws.
var laboratory = []string{module + "/bench/", "gonum.org/v1/plot", "codeberg.org/go-pdf/", "codeberg.org/go-latex/", "codeberg.org/go-fonts/", "git.sr.ht/~sbinet/"}

// Linked returns the packages of the laboratory that a program or a test of some
// packages links. root is the module's folder.
func Linked(root string, packages ...string) ([]string, error) {
	cmd := exec.Command("go", append([]string{"list", "-deps", "-test"}, packages...)...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var linked []string
	for p := range strings.FieldsSeq(string(out)) {
		if slices.ContainsFunc(laboratory, func(prefix string) bool { return strings.HasPrefix(p, prefix) }) {
			linked = append(linked, p)
		}
	}
	return linked, nil
}
