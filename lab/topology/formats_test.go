package topology

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
)

// seen is what became of the files of one kind of a folder.
type seen struct{ files, read, asked, refused, switches, hosts, links int }

// Every file of WEFT_TOPOLOGIES, or else of testdata/formats, is read, or refused with
// a reason that names it; what is asked about can be answered.
func TestTopologies(t *testing.T) {
	root := cmp.Or(os.Getenv("WEFT_TOPOLOGIES"), "testdata/formats")
	count := map[string]*seen{}
	var refused []string
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		extension := strings.ToLower(filepath.Ext(path))
		if err != nil || e.IsDir() || !slices.Contains([]string{".yml", ".yaml", ".json", ".graphml", ".gml", ".t3d", ".gns3", ".py"}, extension) {
			return err
		}
		folder, _ := filepath.Rel(root, filepath.Dir(path))
		of := count[folder+" "+extension]
		if of == nil {
			of = &seen{}
			count[folder+" "+extension] = of
		}
		of.files++
		topo, answers, err := readAnswered(path)
		if err != nil {
			of.refused++
			refused = append(refused, err.Error())
			if name := filepath.Base(path); !strings.Contains(err.Error(), name+":") {
				t.Errorf("the error does not name %s: %v", name, err)
			}
			return nil
		}
		if len(answers) > 0 {
			of.asked++
		} else {
			of.read++
		}
		of.switches, of.hosts, of.links = of.switches+len(topo.Switches), of.hosts+len(topo.Hosts), of.links+len(topo.Links)
		checkImport(t, path, topo, ReadOptions{Answers: answers})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w := tabwriter.NewWriter(t.Output(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "files\tnumber\tread\tread once answered\trefused\tswitches\thosts\tlinks")
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range count {
			if !yield(name) {
				return
			}
		}
	}) {
		c := count[name]
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", name, c.files, c.read, c.asked, c.refused, c.switches, c.hosts, c.links)
	}
	w.Flush()
	for _, r := range refused {
		t.Log(r)
	}
}

// readAnswered reads a file; what it asks about is answered with routers, and Open
// vSwitch bridges with bridges.
func readAnswered(path string) (*Topology, Answers, error) {
	topo, err := LoadFile(path)
	q := (*Questions)(nil)
	if !errors.As(err, &q) {
		return topo, nil, err
	}
	answers := Answers{}
	for _, one := range q.List {
		if answers[one.Key()] = StandIn(KindRouter); one.Kind == clabOVSBridge {
			answers[one.Key()] = StandIn(KindBridge)
		}
	}
	topo, err = loadFile(path, ReadOptions{Answers: answers})
	return topo, answers, err
}

// checkImport checks that the lab file of a drawing is the same network.
func checkImport(t *testing.T, path string, topo *Topology, o ReadOptions) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lab, _, err := Import(path, text, o)
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	again, err := Parse("again", []byte(lab))
	if err != nil {
		t.Errorf("%s: its lab file: %v", path, err)
		return
	}
	if d := Compare(topo, again); !d.None() {
		t.Errorf("%s: its lab file differs: %.300v", path, d)
	}
}

var update = flag.Bool("update", false, "write testdata/formats.txt anew")

// The lab file of each file of testdata/formats, its remarks, or why it is refused, is
// what testdata/formats.txt says.
func TestFormats(t *testing.T) {
	files, err := filepath.Glob("testdata/formats/*")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file)
		fmt.Fprintf(&b, "== %s\n", name)
		lab, remarks, err := Import(name, text, ReadOptions{})
		if q := (*Questions)(nil); errors.As(err, &q) {
			fmt.Fprintln(&b, err)
			lab, remarks, err = Import(name, text, ReadOptions{Answers: Answers{"two": StandHost, "ovs1": "bridge", "nokia_srlinux": "router", "fortinet_fortigate": StandNone}})
		}
		if err == nil {
			_, err = Parse(name, []byte(lab))
		}
		for _, r := range remarks {
			fmt.Fprintln(&b, "remark:", r)
		}
		b.WriteString(lab)
		if err != nil {
			fmt.Fprintln(&b, "refused:", err)
		}
	}
	const golden = "testdata/formats.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	got, wanted := strings.Split(b.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(got), len(wanted)) {
		if i >= len(got) || i >= len(wanted) || got[i] != wanted[i] {
			t.Fatalf("line %d of %s differs: got %q (see -update)", i+1, golden, strings.Join(got[min(i, len(got)):min(i+3, len(got))], "\n"))
		}
	}
}

// Files of others are read within bounds.
func TestBoundedReads(t *testing.T) {
	for file, want := range map[string]string{
		"arcs.graphml": "more than 10 elements", "zoo.gml": "more than 10 keys", "routers.clab.yml": "a lab file has at most 10",
	} {
		text, err := os.ReadFile("testdata/formats/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for want, b := range map[string]Bounds{want: {Items: 10}, "switches and hosts; allowed: at most 3 here": {Nodes: 3}} {
			_, _, err := Import(file, text, ReadOptions{Bounds: b})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", file, err, want)
			}
		}
	}
}

func TestAnswers(t *testing.T) {
	a, err := ParseAnswers([]string{"nokia_srlinux=router", "two=host", "wall=none"})
	if err != nil || len(a) != 3 || a["two"] != StandHost {
		t.Fatal(a, err)
	}
	for _, wrong := range []string{"", "a", "=router", "a=", "a=cisco"} {
		if _, err := ParseAnswers([]string{wrong}); err == nil || !strings.Contains(err.Error(), "allowed: openflow") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	for file, want := range map[string]string{
		"testdata/formats/routers.clab.yml": `r3=router: the file has no node "r3" and no node of that kind to ask about`,
		"testdata/formats/groups.graphml":   `r3=router: the file has no node "r3"`,
		"testdata/write.yaml":               `r3=router: the file has no node "r3"`,
	} {
		if _, err := ResolveWith(file, ReadOptions{Answers: Answers{"r3": "router"}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", file, err, want)
		}
	}
	for _, in := range []StandIn{"openflow", "bridge", StandHost, StandNone} { // of a node that is not asked about, too
		_, err := ResolveWith("testdata/formats/cables.clab.yml", ReadOptions{Answers: Answers{"l3": in}})
		if err != nil {
			t.Errorf("l3=%s: %v", in, err)
		}
	}
}
