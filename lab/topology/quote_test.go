package topology

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Files with names and values of a megabyte are refused in words that do not repeat
// them, by whichever reader.
func TestProblemsQuoteLittle(t *testing.T) {
	big := strings.Repeat("x", 900_000)
	for name, text := range map[string]string{
		"switch.yaml": "switches: [{name: s1}]\nhosts: [{name: h1, switch: " + big + "}]\n",
		"key.yaml":    "switches: [{name: s1}]\n" + big + ": 1\n",
		"name.yaml":   "name: " + big + "\nswitches: [{name: s1}]\n",
		"scalar.yaml": "switches: [{name: s1, dpid: " + big + "}]\n",
		"env.yaml":    "switches: [{name: s1}]\nhosts: [{name: h1, switch: s1, run: [{command: a, env: {\"=" + big + "\": x}}]}]\n",
		"a.gml":       "graph [ node [ id 1 ] edge [ source 1 target " + big + " ] ]",
		"a.graphml":   "<graphml><graph edgedefault=\"undirected\"><node id=\"a\"/><edge source=\"a\" target=\"" + big + "\"/></graph></graphml>",
		"a.t3d":       "{\"vertices\": {\"" + big + "\": 1}}",
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := LoadFile(path)
		if err == nil || len(err.Error()) > 2000 {
			t.Errorf("%s: %.300v", name, err)
		}
	}
}
