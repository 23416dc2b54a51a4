package report

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden file")

// summary is that of an experiment with two figures, one of them without claims.
const summary = `{
  "name": "trivial", "title": "nothing", "paper": "a paper", "claim": "A is twice as fast as B.", "method": "By guessing <em>.", "deviation": "It does not.",
  "samples": 6, "parameters": {"quick": true, "runs": 10, "seed": 1}, "rounds": {"asked": 10, "least": 6, "most": 7}, "lost": 0,
  "machine": {"processor": "a processor", "cores": 2, "kernel": "Linux 6", "memory_bytes": 8589934592},
  "conditions": {"date": "2026-01-02T03:04:00Z", "build": "b", "differs": ["one: nice -15"], "disturbed": "by others"},
  "failed": [{"case": "three", "round": 2, "error": "out of order"}],
  "claims": [
    {"figure": "Fig. 1", "what": "A to B", "paper": "2", "tolerance": 0.25, "ours": 1.2, "ci95": [1.1, 1.4], "n": 7, "reproduced": "contradicts", "cause": "not explained", "mark": {"at_most": 3}, "met": "met"},
    {"figure": "Fig. 1", "what": "not measured", "paper": "-", "ours": null, "ci95": null, "reproduced": "-", "mark": null, "met": "-", "unit": "ms"}
  ],
  "plots": [
    {"name": "Fig. 1", "title": "A and B", "panels": [{"x": {"label": "", "names": ["A", "B"]}, "y": {"label": "ms"}, "series": [{"name": "ours", "kind": "bars", "colour": 1, "points": [{"x": 0, "y": 1.5, "ci95": [1.2, 1.75]}, {"x": 1, "y": null}]}]}]},
    {"name": "Fig. 2", "title": "C", "panels": [{"x": {"label": "s"}, "y": {"label": "ms"}, "series": [{"name": "ours", "kind": "line", "colour": 1, "points": [{"x": 0, "y": 1}, {"x": 1, "y": 2}]}]}]}
  ]
}`

func pages(t *testing.T) []Page {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "trivial"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "trivial", "summary.json"), []byte(summary), 0o644); err != nil {
		t.Fatal(err)
	}
	list, err := Read(dir, "trivial")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestRead(t *testing.T) {
	list := pages(t)
	if len(list) != 2 || len(list[0].Claims) != 2 || len(list[1].Claims) != 0 || list[0].Machine.Cores != 2 {
		t.Errorf("got %+v", list)
	}
	if _, err := Read(t.TempDir(), "trivial"); !errors.Is(err, ErrNotRun) || !strings.Contains(err.Error(), "weft experiment run trivial") {
		t.Errorf("of nothing: %v", err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "trivial"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{summary[:len(summary)/2], "[]", `{"claims": 3}`, `{"plots": {}}`} {
		if err := os.WriteFile(filepath.Join(dir, "trivial", "summary.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(dir, "trivial"); err == nil || !strings.Contains(err.Error(), "run it again") {
			t.Errorf("of %.20q: %v", text, err)
		}
	}
}

func TestHTML(t *testing.T) {
	var b bytes.Buffer
	if err := HTML(&b, pages(t)); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "report.html")
	if *update {
		if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("the page is not %s; see what differs, then run with -update", golden)
	}
	for _, outside := range []string{"src=", "<link", "@import", "<em>"} {
		if strings.Contains(b.String(), outside) {
			t.Errorf("the page has %q", outside)
		}
	}
}

// Each figure has a page, on which there is room for it however much there is to
// say.
func TestPDF(t *testing.T) {
	list := pages(t)
	for range 80 {
		list[0].Claims = append(list[0].Claims, list[0].Claims[0])
	}
	var b bytes.Buffer
	if err := PDF(&b, list); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "/Type /Page\n"); n != len(list) {
		t.Errorf("%d pages, want %d", n, len(list))
	}
}
