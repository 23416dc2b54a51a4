package command

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/weft-sdn/weft/cmd/weft/planner"
	"github.com/weft-sdn/weft/deploy/export"
	"github.com/weft-sdn/weft/deploy/plans"
	"github.com/weft-sdn/weft/plan"
)

var updateExports = flag.Bool("update-exports", false, "write the golden files of weft export")

// exportKinds are the exports as functions.
var exportKinds = map[string]func(export.Config) ([]export.File, error){
	"compose": export.Compose,
	"helm":    export.Helm,
	"osm":     func(c export.Config) ([]export.File, error) { return export.OSM(c, false) },
}

func exportOf(t *testing.T, kind, name string) []export.File {
	t.Helper()
	p, err := planner.ReadPlan(name)
	if err != nil {
		t.Fatal(err)
	}
	files, err := exportKinds[kind](export.Config{Plan: p, Specs: planner.AllSpecs(), Image: "weft:1.0.0", Version: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Exports of the built-in plans are what they were, apart from what is the same
// in every chart, and the same each time.
func TestExportGolden(t *testing.T) {
	for kind := range exportKinds {
		for _, name := range plans.Names() {
			var b strings.Builder
			files := exportOf(t, kind, name)
			for _, f := range files {
				fmt.Fprintf(&b, "==> %s\n", f.Path)
				if fixed := strings.Contains(f.Path, "templates/") || strings.Contains(f.Path, "values.schema.json"); !fixed && !strings.Contains(f.Path, "checksums.txt") {
					b.Write(f.Data)
				}
			}
			golden := filepath.Join("testdata", "export", name+"-"+kind+".txt")
			if *updateExports {
				if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if b.String() != string(want) {
				t.Errorf("%s of %s is not %s; look at the difference, and if it is meant run go test ./cmd/weft/command -run TestExportGolden -update-exports", kind, name, golden)
			}
			for i, f := range exportOf(t, kind, name) {
				if f.Path != files[i].Path || !bytes.Equal(f.Data, files[i].Data) {
					t.Errorf("%s of %s: %s differs the second time", kind, name, f.Path)
				}
			}
		}
	}
}

// What is YAML or JSON can be read, and no file holds a secret.
func TestExportFiles(t *testing.T) {
	secret := regexp.MustCompile(`PRIVATE KEY|BEGIN CERTIFICATE|(?i)password: *\S`)
	for kind := range exportKinds {
		for _, name := range plans.Names() {
			for _, f := range exportOf(t, kind, name) {
				var v any
				switch {
				case strings.Contains(f.Path, "/templates/") || strings.HasPrefix(f.Path, "templates/"):
				case strings.HasSuffix(f.Path, ".yaml"):
					if err := yaml.Unmarshal(f.Data, &v); err != nil {
						t.Errorf("%s of %s: %s: %v", kind, name, f.Path, err)
					}
				case strings.HasSuffix(f.Path, ".json"):
					if err := json.Unmarshal(f.Data, &v); err != nil {
						t.Errorf("%s of %s: %s: %v", kind, name, f.Path, err)
					}
				}
				if m := secret.Find(f.Data); m != nil {
					t.Errorf("%s of %s: %s holds %q", kind, name, f.Path, m)
				}
				if strings.HasSuffix(f.Path, "plan.yaml") && !strings.Contains(f.Path, "templates") {
					if _, err := plan.Parse("plan.yaml", f.Data); err != nil {
						t.Errorf("%s of %s: %s: %v", kind, name, f.Path, err)
					}
				}
			}
		}
	}
}

// exportedFile reads a file of an export.
func exportedFile(t *testing.T, files []export.File, path string, v any) {
	t.Helper()
	i := slices.IndexFunc(files, func(f export.File) bool { return f.Path == path })
	if i < 0 {
		t.Fatalf("no file %s", path)
	}
	if err := yaml.Unmarshal(files[i].Data, v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// chartValues is a part of values.yaml.
type chartValues struct {
	Workers map[string]struct {
		Processes, Services []string
		Kind                string
	}
}

// Every process of a plan is in each export, under a name that orchestrators
// take.
func TestExportProcesses(t *testing.T) {
	valid := regexp.MustCompile(`^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)
	for _, name := range plans.Names() {
		p, err := planner.ReadPlan(name)
		if err != nil {
			t.Fatal(err)
		}
		var compose struct {
			Services map[string]struct{ Command []string }
			Secrets  map[string]any
		}
		exportedFile(t, exportOf(t, "compose", name), "docker-compose.yaml", &compose)
		var values, own chartValues
		exportedFile(t, exportOf(t, "helm", name), "values.yaml", &values)
		osm := exportOf(t, "osm", name)
		for _, i := range p.Instances() {
			c, ok := compose.Services[i.Name]
			if !ok || !slices.Contains(c.Command, "--process="+i.Name) || !valid.MatchString(i.Name) {
				t.Errorf("compose of %s: no service of process %s: %v", name, i.Name, c)
			}
			if compose.Secrets[i.Name+".key"] == nil {
				t.Errorf("compose of %s: no key for %s", name, i.Name)
			}
			w, ok := values.Workers[i.Worker]
			if !ok || !slices.Contains(w.Processes, i.Name) || !slices.Equal(w.Services, i.Services) {
				t.Errorf("helm of %s: process %s is not in worker %s: %v", name, i.Name, i.Worker, w)
			}
			if many := len(w.Processes) > 1; many && w.Kind != "StatefulSet" {
				t.Errorf("helm of %s: %s has %d processes and is a %s", name, i.Worker, len(w.Processes), w.Kind)
			}
			function := "weft-" + name + "-" + i.Worker
			var d struct {
				VNFD struct {
					ID  string
					KDU []struct {
						Name  string
						Chart string `yaml:"helm-chart"`
					}
				} `yaml:"vnfd"`
			}
			exportedFile(t, osm, function+"_knf/"+function+"_vnfd.yaml", &d)
			chart := function + "_knf/helm-chart-v3s/" + d.VNFD.KDU[0].Chart + "/values.yaml"
			own = chartValues{}
			exportedFile(t, osm, chart, &own)
			if _, ok := own.Workers[i.Worker]; !ok {
				t.Errorf("osm of %s: %s has no worker %s", name, chart, i.Worker)
			}
		}
	}
}

// A secret in a plan, and names that orchestrators do not take, are refused.
func TestExportRefused(t *testing.T) {
	for text, want := range map[string]string{
		"transport: nats\nworkers:\n  all: {services: [southbound, discovery, hosts, paths, forwarding, flowrules, stats, gateway]}\n":                                     "take grpc",
		"workers:\n  all: {services: [southbound, discovery, hosts, paths, forwarding, flowrules, stats, gateway], settings: {gateway: {token: 0123456789abcdef0123}}}\n":  "secret",
		"workers:\n  nats: {services: [southbound, discovery, hosts, paths, forwarding, flowrules, stats, gateway]}\n":                                                     "rename",
		"workers:\n  all: {services: [southbound, discovery, hosts, paths, forwarding, flowrules, stats, gateway], settings: {southbound: {listen: [\"unix:/run/x\"]}}}\n": "add an address",
	} {
		p, err := plan.Parse("mine.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for kind, f := range exportKinds {
			if _, err := f(export.Config{Plan: p, Specs: planner.AllSpecs(), Image: "weft"}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s of\n%s: error %v; want one with %q", kind, text, err, want)
			}
		}
	}
}

// The command writes where it says, lists it, and spares what is there.
func TestExportCommand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	run := func(args ...string) (string, string, int) {
		var out, errs bytes.Buffer
		code := execute(append([]string{"export"}, args...), &out, &errs)
		return out.String(), errs.String(), code
	}
	for _, kind := range []string{"compose", "helm", "osm"} {
		at := filepath.Join(dir, kind)
		out, errs, code := run(kind, "scale", "--dir", at, "-o", "json")
		if code != 0 {
			t.Fatalf("%s: %s", kind, errs)
		}
		var e struct{ Files, Next []string }
		if err := json.Unmarshal([]byte(out), &e); err != nil || len(e.Files) == 0 || len(e.Next) == 0 {
			t.Fatalf("%s: %v: %s", kind, err, out)
		}
		for _, f := range e.Files {
			if _, err := os.Stat(filepath.Join(at, f)); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
		kept := filepath.Join(at, "kept")
		if err := os.WriteFile(kept, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, errs, code := run(kind, "scale", "--dir", at); code == 0 || !strings.Contains(errs, "--force") {
			t.Errorf("%s writes into a directory that is not empty: %s", kind, errs)
		}
		if _, errs, code := run(kind, "scale", "--dir", at, "--force"); code != 0 {
			t.Errorf("%s --force: %s", kind, errs)
		}
		if _, err := os.Stat(kept); err != nil {
			t.Error(err)
		}
	}
	packed := filepath.Join(dir, "packed")
	if _, errs, code := run("osm", "scale", "--dir", packed, "--pack"); code != 0 {
		t.Fatal(errs)
	}
	if list, _ := filepath.Glob(filepath.Join(packed, "*.tar.gz")); len(list) != 5 {
		t.Errorf("packages are %v; want 4 functions and 1 service", list)
	}
}
