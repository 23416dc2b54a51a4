package lab

import (
	"encoding/xml"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/topology"
)

func TestGraphOutputs(t *testing.T) {
	for _, spec := range []string{"demo", "fattree:4", "linear:1", "linear:3,0", "random:40,3,7", "ring:500"} {
		topo, err := topology.Resolve(spec)
		if err != nil {
			t.Fatal(err)
		}
		g := GraphOf(topo)
		g.Links[len(g.Links)-1].State = layout.LinkIsDown
		var svg, dot, text strings.Builder
		for _, err := range []error{g.SVG(&svg), g.DOT(&dot), g.Text(&text)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if n := strings.Count(svg.String(), "<circle"); n != len(topo.Switches) {
			t.Errorf("%s: the drawing has %d switches, want %d", spec, n, len(topo.Switches))
		}
		if n := strings.Count(svg.String(), "<line"); n != len(g.Links) {
			t.Errorf("%s: the drawing has %d links, want %d", spec, n, len(g.Links))
		}
		if strings.Contains(svg.String(), "NaN") {
			t.Errorf("%s: the drawing has no coordinates somewhere", spec)
		}
		for d := xml.NewDecoder(strings.NewReader(svg.String())); ; {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: the drawing is not XML: %v", spec, err)
			}
		}
		if n := strings.Count(dot.String(), " -- "); n != len(g.Links) {
			t.Errorf("%s: DOT has %d links, want %d", spec, n, len(g.Links))
		}
		if !strings.Contains(text.String(), "(down)") {
			t.Errorf("%s: the text does not show what is down", spec)
		}
	}
}

// A router, which no controller knows, is named by its kind, and a switch by a short DPID.
func TestGraphIdentities(t *testing.T) {
	topo, err := topology.Parse("r.yaml", []byte("switches: [{name: r1, kind: router}, {name: s1, kind: hybrid, dpid: 0x1f}]\nlinks: [{a: r1, b: s1}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := GraphOf(topo).Text(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"r1 router  ", "s1 dpid 1f  "} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in:\n%s", want, text.String())
		}
	}
}

// No two switches of a drawing lie on each other.
func TestDrawingsDoNotOverlap(t *testing.T) {
	for _, spec := range []string{"demo", "fattree:4", "tree:3,2", "linear:8", "ring:12", "random:30,3,1", "msn-fig13"} {
		topo, err := topology.Resolve(spec)
		if err != nil {
			t.Fatal(err)
		}
		at := arrange(topo)
		for i, a := range topo.Switches {
			for _, b := range topo.Switches[:i] {
				p, q := at[a.Name], at[b.Name]
				if d := math.Hypot(p.x-q.x, p.y-q.y); d < 25 {
					t.Errorf("%s: %s and %s are %.0f apart", spec, a.Name, b.Name, d)
				}
			}
		}
	}
}
