package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A report needs results: where nothing was run, it says what to run.
func TestExperimentReport(t *testing.T) {
	dir := t.TempDir()
	var out, errs bytes.Buffer
	for _, args := range [][]string{{"experiment", "report", "--dir", dir}, {"experiment", "report", "msn-scaling", "--dir", dir}} {
		out.Reset()
		errs.Reset()
		if status := Main(args, &out, &errs); status != 1 || !strings.Contains(errs.String(), "nothing was run") || !strings.Contains(errs.String(), "weft experiment run") {
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
	if status := Main([]string{"experiment", "report", "--dir", dir, "-o", "json"}, &out, &errs); status != 0 || !strings.Contains(out.String(), `"figure": "Fig. 14"`) {
		t.Errorf("status %d, %q, %q", status, out.String(), errs.String())
	}
	for _, name := range []string{"report.html", "report.pdf"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v, or empty", name, err)
		}
	}
}
