package docs

import (
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/cmd/weft/command"
	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/nodes"
	"github.com/weft-sdn/weft/lab/topology"
)

// configurations are those of programs that are not Weft's, by the name of a file of an example.
const configurations = "-core.yaml"

// uriHost is the address in a URI of a configuration, and ownHost that which a function says is its own.
var (
	uriHost = regexp.MustCompile(`[uU]ri: http://([0-9.]+):`)
	ownHost = regexp.MustCompile(`(?:registerIPv4|bindingIPv4): ([0-9.]+)`)
)

// TestExamples checks the examples as far as that goes without the programs that they
// run: plans and labs have no mistakes, files that programs are given are there, their
// configurations name hosts of the lab, and the README tells of each file.
func TestExamples(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join(root, "examples/*"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, folder := range folders {
		readme := read(t, filepath.Join("examples", filepath.Base(folder), "README.md"))
		files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			name := filepath.Base(file)
			if !strings.Contains(readme, "| `"+name+"` |") {
				t.Errorf("%s: README.md has no row for %s", folder, name)
			}
			if strings.HasSuffix(name, configurations) {
				continue
			}
			var out strings.Builder
			if status := command.Main([]string{"check", file}, &out, &out); status != 0 {
				t.Errorf("%s", out.String())
			}
			if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), "\nswitches:") {
				checkExampleLab(t, file)
			}
		}
	}
}

// checkExampleLab checks what a lab file says of programs.
func checkExampleLab(t *testing.T, file string) {
	topo, err := topology.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	hosts, programs := map[netip.Addr]bool{}, map[string]bool{}
	for _, h := range topo.Hosts {
		hosts[h.IPv4.Addr()] = true
	}
	for _, h := range topo.Hosts {
		for _, p := range h.Run {
			words := strings.Fields(p.Command)
			programs[words[0]] = words[0] != "weft"
			for _, word := range words {
				if !strings.HasSuffix(word, configurations) {
					continue
				}
				text, err := os.ReadFile(filepath.Join(filepath.Dir(file), word))
				if err != nil {
					t.Errorf("%s: %s: %v", file, h.Name, err)
				}
				for _, m := range uriHost.FindAllStringSubmatch(string(text), -1) {
					if a, err := netip.ParseAddr(m[1]); err != nil || !hosts[a] {
						t.Errorf("%s: %s of host %s names %s, which no host has", file, word, h.Name, m[1])
					}
				}
				for _, m := range ownHost.FindAllStringSubmatch(string(text), -1) {
					if m[1] != h.IPv4.Addr().String() {
						t.Errorf("%s: %s is at %s, but the configuration %s says %s", file, h.Name, h.IPv4.Addr(), word, m[1])
					}
				}
			}
		}
	}
	t.Setenv("PATH", t.TempDir())
	laid := layout.Lay(topo)
	laid.Weft = "/bin/sh"
	problem := nodes.HostsOf(laid).CheckPrograms()
	if problem == nil || strings.Contains(problem.Error(), "\n") {
		t.Errorf("%s: without its programs, want one line; got %v", file, problem)
		return
	}
	for name, missing := range programs {
		if missing && !strings.Contains(problem.Error(), " "+name+" ") {
			t.Errorf("%s: %s is missing, but not said: %v", file, name, problem)
		}
	}
}
