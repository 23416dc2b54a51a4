// Package testprogram gives tests the program under test, cmd/weft, built once
// for all of them.
//
// Tests import it, nothing else does. It imports only the standard library.
package testprogram

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Variable is the environment variable that names a program to test. make test
// builds bin/weft and sets it, so that no test links the program again.
const Variable = "WEFT_PROGRAM"

// Package is the path of the program's package.
const Package = "github.com/weft-sdn/weft/cmd/weft"

var once = sync.OnceValues(build)

// Weft returns the path of the program. Without Variable the program is built,
// once per test binary, into a folder that stays until Remove.
func Weft(t testing.TB) string {
	t.Helper()
	program, err := once()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

func build() (string, error) {
	if program := os.Getenv(Variable); program != "" {
		_, err := os.Stat(program)
		return program, err
	}
	program := filepath.Join(folder(), "weft")
	if out, err := exec.Command("go", "build", "-o", program, Package).CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w\n%s", Package, err, out)
	}
	return program, nil
}

// Remove removes what Weft has built. It is for TestMain, after all tests.
func Remove() {
	if os.Getenv(Variable) == "" {
		_ = os.RemoveAll(folder()) // a temporary folder
	}
}

func folder() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("weft-program-%d", os.Getpid()))
}
