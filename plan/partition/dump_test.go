package partition

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"testing"
	"time"
)

func metis(g *Graph, p int) string {
	x := g.adjacency()
	f, _ := os.Create(fmt.Sprintf("/tmp/pp/g%d.graph", p))
	fmt.Fprintln(f, x.len(), len(x.to)/2, "001")
	for i := range x.len() {
		to, w := x.of(i)
		for j, v := range to {
			fmt.Fprint(f, v+1, " ", w[j], " ")
		}
		fmt.Fprintln(f)
	}
	f.Close()
	best := ""
	for _, m := range []string{"-ptype=kway", "-ptype=rb"} {
		out, _ := exec.Command("gpmetis", m, "-ncuts=20", "-ufactor=50", f.Name(), fmt.Sprint(p)).CombinedOutput()
		mm := regexp.MustCompile(`Edgecut: (\d+)`).FindSubmatch(out)
		best += string(mm[1]) + " "
	}
	return best
}

func TestMetis(t *testing.T) {
	w, _ := Waxman(200, 0.15, 0.4, 1)
	w2, _ := Waxman(1000, 0.05, 0.2, 2)
	grid, _ := Grid(16, 16)
	grid2, _ := Grid(64, 64)
	for _, c := range []struct {
		name string
		g    *Graph
		p    []int
	}{{"waxman200", w, []int{2, 4, 8, 16}}, {"waxman1000", w2, []int{2, 8, 32}}, {"grid16", grid, []int{2, 4, 8, 16}}, {"grid64", grid2, []int{4, 8, 32}}} {
		for _, p := range c.p {
			at := time.Now()
			o := Options{Partitions: p, Tolerance: 0.05, Method: ByCut}
			r, err := Partition(c.g, o)
			took := time.Since(at)
			fmt.Println(c.name, len(c.g.Links), p, "cut", r.Cut, "metis", metis(c.g, p), "conn", r.Connected(), took.Round(time.Millisecond), err)
		}
	}
}
