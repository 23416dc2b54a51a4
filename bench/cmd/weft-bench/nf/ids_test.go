package nf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/bench/nf/ids"
)

// An intrusion detection says what its rules lack before it opens anything.
func TestIDSRefuses(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	empty, one, bad := write("empty", "# none\n"), write("one", "anomaly a is=malformed"), write("bad", "anomaly a")
	for line, want := range map[string]string{
		"ids a b":                                "no rules: say --rules FILE",
		"ids a b --rules " + empty:               "no rules: want lines such as",
		"ids a b --rules " + bad:                 "bad:1: anomaly a: want KIND NAME KEY=VALUE…",
		"ids a b --rules " + dir + "/none":       "no such file",
		"ids a b --share 3/2 --rules " + one:     "want K/N",
		"ids a b --share 2/2 --rules " + one:     "no rules are left of 1",
		"ids a b --only content --rules " + one:  "no rules are left of 1",
		"ids a b --only contents --rules " + one: `only "contents": want content`,
		"ids none0 none1 --rules " + one:         "interface none0",
		"ids rules 0":                            "want 1 to 10000",
		"ids rules x":                            "want 1 to 10000",
	} {
		if _, err := weftNF(t.Context(), line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	out, err := weftNF(t.Context(), "ids rules 200")
	if err != nil {
		t.Fatal(err)
	}
	if rules, err := ids.ParseRules("f", out); err != nil || len(rules) != 200 {
		t.Errorf("%d rules, %v", len(rules), err)
	}
}
