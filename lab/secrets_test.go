package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/topology"
)

// Who may only look at a lab gets no values of environments.
func TestReadersGetNoSecrets(t *testing.T) {
	top, err := topology.Parse("a.yaml", []byte("switches: [{name: s1}]\nhosts: [{name: h1, switch: s1, run: [{command: a, env: {PASSWORD: s3cret}}]}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := top.ForReaders().YAML()
	if err != nil || strings.Contains(string(text), "s3cret") || !strings.Contains(string(text), "PASSWORD") {
		t.Errorf("%s, %v", text, err)
	}
	if whole, err := top.YAML(); err != nil || !strings.Contains(string(whole), "s3cret") {
		t.Errorf("%s, %v", whole, err)
	}
}

// What is kept of a lab is for its user alone: programs' environments are in it.
func TestStateIsForItsUserAlone(t *testing.T) {
	dir := t.TempDir()
	if err := (&layout.Lab{Name: "x", Topology: &topology.Topology{Name: "x"}}).SaveIn(dir); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "lab.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}
