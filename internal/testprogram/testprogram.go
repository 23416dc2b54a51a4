// Package testprogram gives tests the program under test, cmd/weft, built once
// for all of them, and where they want it weft-bench beside it.
//
// Tests import it, nothing else does. It imports only the standard library.
package testprogram

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Variable is the environment variable that names a program to test. make test
// builds bin/weft, and bin/weft-bench beside it, and sets it, so that no test links
// a program again.
const Variable = "WEFT_PROGRAM"

// The paths of the programs' packages.
const (
	Package      = "github.com/weft-sdn/weft/cmd/weft"
	BenchPackage = "github.com/weft-sdn/weft/bench/cmd/weft-bench"
)

var (
	weft  = sync.OnceValues(func() (string, error) { return build("weft", Package) })
	bench = sync.OnceValues(func() (string, error) { return build("weft-bench", BenchPackage) })
)

// Weft returns the path of the program. Without Variable the program is built,
// once per test binary, into a folder that stays until Remove.
func Weft(t testing.TB) string {
	t.Helper()
	program, err := weft()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// WithBench is Weft, with weft-bench in the same folder.
func WithBench(t testing.TB) string {
	t.Helper()
	if _, err := bench(); err != nil {
		t.Fatal(err)
	}
	return Weft(t)
}

func build(name, pkg string) (string, error) {
	if program := os.Getenv(Variable); program != "" {
		if name != "weft" {
			program = filepath.Join(filepath.Dir(program), name)
		}
		_, err := os.Stat(program)
		return program, err
	}
	program := filepath.Join(folder(), name)
	if out, err := exec.Command("go", "build", "-o", program, pkg).CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
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

// Install writes a program to a path. Another process does, for a child that is forked
// meanwhile would have the file open for writing, and the program could not be run then
// (ETXTBSY, "text file busy").
func Install(t testing.TB, path string, program []byte) {
	t.Helper()
	cmd := exec.Command("install", "-m", "755", "/dev/stdin", path)
	cmd.Stdin = bytes.NewReader(program)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("write the program %s: %v: %s", path, err, out)
	}
}
