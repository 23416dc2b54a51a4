package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/cmd/weft/command"
	"github.com/weft-sdn/weft/lab/topology"
)

// A report needs results: where nothing was run, it says what to run.
func TestExperimentReport(t *testing.T) {
	dir := t.TempDir()
	var out, errs bytes.Buffer
	for _, args := range [][]string{{"experiment", "report", "--dir", dir}, {"experiment", "report", "msn-scaling", "--dir", dir}} {
		out.Reset()
		errs.Reset()
		if status := run(args, &out, &errs); status != 1 || !strings.Contains(errs.String(), "nothing was run") || !strings.Contains(errs.String(), "weft experiment run") {
			t.Errorf("%q: status %d, %q", args, status, errs.String())
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "msn-scaling"), 0o755); err != nil {
		t.Fatal(err)
	}
	summary := `{"name": "msn-scaling", "plots": [{"name": "Fig. 14", "title": "latency", "panels": []}]}`
	if err := os.WriteFile(filepath.Join(dir, "msn-scaling", "summary.json"), []byte(summary), 0o644); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	errs.Reset()
	if status := run([]string{"experiment", "report", "--dir", dir, "-o", "json"}, &out, &errs); status != 0 || !strings.Contains(out.String(), `"figure": "Fig. 14"`) {
		t.Errorf("status %d, %q, %q", status, out.String(), errs.String())
	}
	for _, name := range []string{"report.html", "report.pdf"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v, or empty", name, err)
		}
	}
}

// The commands of a 5G core's hosts are commands of weft.
func TestCore5GCommands(t *testing.T) {
	topo, err := topology.Resolve("5gc:1")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, h := range topo.Hosts {
		for _, p := range h.Run {
			ran++
			var out, errs bytes.Buffer
			args := append(strings.Fields(p.Command)[1:], "--help")
			if status := run(args, &out, &errs); status != 0 || !strings.Contains(out.String(), "weft nf "+p.Name) {
				t.Errorf("%s: exit status %d, %s%s", p.Command, status, &out, &errs)
			}
		}
	}
	if ran != 6 {
		t.Errorf("%d commands, want 6", ran)
	}
}

// TestHelp: weft lists the commands of the laboratory as weft-bench does, and has no
// others.
func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"__complete", ""}} {
		var want, got, errs bytes.Buffer
		if status := run(args, &want, &errs); status != 0 {
			t.Errorf("weft-bench %s: status %d, %s", args, status, &errs)
		}
		if status := command.Main(args, &got, &errs); status != 0 || got.String() != want.String() {
			t.Errorf("weft %s: status %d\n%s\nof weft-bench:\n%s", args, status, &got, &want)
		}
	}
}
