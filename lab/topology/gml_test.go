package topology

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func gmlFile(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "net.gml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

const zoo = `# comment
Creator "Topology Zoo"
Version 1.0
graph [
  directed 0
  node [ id 0 label "Frankfurt am Main" Longitude 8.68417 Latitude 50.11552
         graphics [ x 1.0 y 2.0 ] ]
  node [ id 1 label "K&ouml;ln" Longitude 6.95 Latitude 50.93333 ]
  node [ id 2 ]
  edge [ source 0 target 1 LinkSpeedRaw 1000000000.0 ]
  edge [ source 1 target 0 ]
  edge [ source 1 target 1 ]
]
`

func TestGML(t *testing.T) {
	topo, err := Resolve("gml:" + gmlFile(t, zoo))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range topo.Switches {
		names = append(names, s.Name)
	}
	if want := []string{"Frankfurt-am-Main", "Koln", "n2"}; !slices.Equal(names, want) {
		t.Errorf("switches %q, want %q", names, want)
	}
	if len(topo.Hosts) != 3 || len(topo.Links) != 2 {
		t.Fatalf("%d hosts, %d links; want 3 and 2", len(topo.Hosts), len(topo.Links))
	}
	if l := topo.Links[0]; l.Rate != 1e9 || time.Duration(l.Delay).Round(time.Millisecond/10) != 800*time.Microsecond {
		t.Errorf("Frankfurt to Cologne: rate %v, delay %v", l.Rate, l.Delay)
	}
	want := []string{
		"the network is in 2 parts that no link joins: hosts of one do not reach those of another",
		"part 1: Frankfurt-am-Main, Koln", "part 2: n2",
		"2 parallel links join Frankfurt-am-Main and Koln",
		"a link from Koln to itself was left out",
	}
	if got := Remarks(topo); !slices.Equal(got, want) {
		t.Errorf("remarks\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestGMLMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"graph [ node [ id 1 ":                  ":1: not GML: the file ends inside a list",
		"graph [\n] ]":                          `:2: not GML: "]" is not a key`,
		"graph [ node [ id ] ]":                 "key id has no value",
		"graph":                                 "key graph has no value",
		"a 1":                                   "0 graphs with 0 nodes",
		"graph [ ]":                             "1 graphs with 0 nodes",
		"graph [ node [ id 1 ] node [ id 1 ] ]": `node id "1" stands twice`,
		"graph [ node [ id 1 ] edge [ target 1]]": `edge from "" to "1": no such node`,
		strings.Repeat("a [", 100_000):            "more than 32 lists",
	} {
		_, err := LoadFile(gmlFile(t, text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %.200v, want %q", text, err, want)
		}
	}
}

func TestRemarksOfOrdinaryTopologies(t *testing.T) {
	for _, spec := range []string{"demo", "ring:4", "fattree:4", "linear:1"} {
		topo, err := Resolve(spec)
		if err != nil {
			t.Fatal(err)
		}
		if r := Remarks(topo); len(r) > 0 {
			t.Errorf("%s: %q", spec, r)
		}
	}
}

func FuzzGML(f *testing.F) {
	f.Add(zoo)
	f.Add("graph [ node [ id 1 label \"x")
	f.Fuzz(func(t *testing.T, text string) {
		topo, err := LoadFile(gmlFile(t, text))
		if err == nil {
			Remarks(topo)
		}
	})
}
