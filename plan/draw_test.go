package plan_test

import (
	"encoding/xml"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weft-sdn/weft/plan"
)

func TestDrawings(t *testing.T) {
	for name, text := range map[string]string{"split": splitPlan, "scale": scalePlan, "multi": multiPlan} {
		p := checked(t, text)
		golden(t, name+".txt", p.Text(network()))
		golden(t, name+".svg", p.SVG(network()))
		fits(t, name, p.SVG(network()))
	}
}

// In every drawing texts stay in their boxes and boxes in the picture.
func TestDrawingsFit(t *testing.T) {
	for seed := range uint64(200) {
		p := randomPlan(rand.New(rand.NewPCG(seed, 2)))
		p.Workers[0].Name = strings.Repeat("w", 50)
		p.Workers[0].CPUs = "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15"
		fits(t, fmt.Sprint("seed ", seed), p.SVG(network()))
		for line := range strings.Lines(p.Text(network())) {
			if !utf8.ValidString(line) || strings.HasSuffix(line, " \n") {
				t.Errorf("seed %d: line %q", seed, line)
			}
		}
	}
}

type rect struct{ x, y, w, h float64 }

// fits checks the geometry of a drawing: it is well-formed, no text leaves the
// picture, that of a worker none of its boxes, and no two workers overlap.
func fits(t *testing.T, name, svg string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	var picture, box rect // the innermost box so far
	var workers []rect
	inWorker, fresh := false, false
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if e, ok := token.(xml.EndElement); ok && e.Name.Local == "g" {
			inWorker = false
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		a := map[string]string{}
		for _, attribute := range e.Attr {
			a[attribute.Name.Local] = attribute.Value
		}
		number := func(key string) float64 {
			v, err := strconv.ParseFloat(a[key], 64)
			if err != nil {
				t.Fatalf("%s: %s %s: %v", name, e.Name.Local, key, err)
			}
			return v
		}
		switch e.Name.Local {
		case "svg":
			picture = rect{0, 0, number("width"), number("height")}
		case "g":
			inWorker, fresh = true, true
		case "rect":
			if a["class"] == "ground" {
				continue
			}
			box = rect{number("x"), number("y"), number("width"), number("height")}
			if box.x < 0 || box.y < 0 || box.x+box.w > picture.w || box.y+box.h > picture.h {
				t.Errorf("%s: %s at %v leaves the picture %v", name, a["class"], box, picture)
			}
			if a["class"] == "box" && inWorker && fresh {
				for _, o := range workers {
					if box.x < o.x+o.w && o.x < box.x+box.w && box.y < o.y+o.h && o.y < box.y+box.h {
						t.Errorf("%s: workers at %v and %v overlap", name, box, o)
					}
				}
				workers, fresh = append(workers, box), false
			}
		case "text":
			x, y, size := number("x"), number("y"), number("font-size")
			content, err := d.Token()
			if err != nil {
				t.Fatal(err)
			}
			wide := float64(utf8.RuneCountInString(string(content.(xml.CharData)))) * size * 0.602
			if a["text-anchor"] == "middle" {
				x -= wide / 2
			}
			in := picture
			if inWorker {
				in = box
			}
			if x < in.x || x+wide > in.x+in.w || y > in.y+in.h || y-size*0.8 < in.y {
				t.Errorf("%s: text %q at %.0f,%.0f is %.0f wide and leaves %v", name, content, x, y, wide, in)
			}
		}
	}
}

// What stands in a plan cannot become a part of the drawing's markup.
func TestDrawingIsEscaped(t *testing.T) {
	p := &plan.Plan{Name: "<script>", Transport: "grpc", Events: "nats", Balance: "flow", Workers: []plan.Worker{{Name: "<b>&", Partition: "gone", Services: []string{"<i>\""}, Replicas: 1, Machine: "</svg>"}}}
	svg := p.SVG(network())
	for _, bad := range []string{"<script>", "<b>", "<i>", "on </svg>"} {
		if strings.Contains(svg, bad) {
			t.Errorf("%s is in the drawing", bad)
		}
	}
	fits(t, "escaped", svg)
}
