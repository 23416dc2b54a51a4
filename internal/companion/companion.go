// Package companion finds the programs that are installed beside this one: weft
// has weft-bench, and weft-bench has weft.
//
// Commands, benches and tests import it; it imports the standard library only.
package companion

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Find returns the path of a program: the one in the folder of this program, or
// else that on PATH. The error says what to install.
func Find(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find %s: %w", name, err)
	}
	beside := filepath.Join(filepath.Dir(self), name)
	if path, err := exec.LookPath(beside); err == nil {
		return path, nil
	}
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("the program %s is neither in %s nor on PATH; install %[1]s there: releases have it beside weft, and make build makes both", name, filepath.Dir(self))
}
