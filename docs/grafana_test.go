package docs_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestGrafana reads the dashboard: every figure of Weft's that it shows is one
// that the code exports.
func TestGrafana(t *testing.T) {
	raw, err := os.ReadFile("grafana/weft.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string `json:"title"`
			Type    string `json:"type"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal(raw, &dashboard); err != nil {
		t.Fatal(err)
	}
	figure := regexp.MustCompile(`\bweft_([a-z]+)_([a-z_]+)`)
	source := map[string]string{}
	shown := 0
	for _, p := range dashboard.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			for _, m := range figure.FindAllStringSubmatch(target.Expr, -1) {
				shown++
				owner, name := m[1], regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(m[2], "")
				if source[owner] == "" {
					source[owner] = code(t, owner)
				}
				if !strings.Contains(source[owner], `"`+name+`"`) && !(owner == "stats" && strings.HasPrefix(name, "all_")) && !strings.Contains(source[owner], m[0]) {
					t.Errorf("panel %q shows %s, which nothing exports", p.Title, m[0])
				}
			}
		}
	}
	if shown < 30 {
		t.Errorf("only %d figures", shown)
	}
}

// code returns the source of a service, or of what is no service.
func code(t *testing.T, owner string) string {
	t.Helper()
	var all strings.Builder
	for _, pattern := range []string{"../services/" + owner + "/*.go", "../services/" + owner + "/*/*.go", "../deploy/*.go", "../deploy/local/*.go", "../deploy/packets/*.go", "../bus/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(b)
		}
	}
	return all.String()
}
