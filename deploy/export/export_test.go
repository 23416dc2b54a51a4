package export

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/plan"
)

// listening is a configuration with a key listen.
type listening struct {
	Listen []string `yaml:"listen"`
}

func (*listening) Validate() error { return nil }

// specs are services such as a plan may have. Exports of the built-in plans, of
// the real services, are compared in cmd/weft, which knows those.
func specs() []weft.Spec {
	return []weft.Spec{
		{Name: "south", Pipeline: true, Scale: weft.PerPartition, Config: &listening{[]string{"tcp:127.0.0.1:6653"}}},
		{Name: "intake", Beside: []string{}, Scale: weft.PerPartition, Config: &listening{}},
		{Name: "route", Scale: weft.Any},
	}
}

func modelOf(t *testing.T, text string) (*model, error) {
	t.Helper()
	p, err := plan.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return newModel(Config{Plan: p, Specs: specs(), Image: "weft:1"})
}

// Ports are those of the plan at all addresses of the container, and differ on
// the host that publishes them.
func TestPorts(t *testing.T) {
	m, err := modelOf(t, `
workers:
  a: {services: [south], settings: {south: {listen: ["tcp:127.0.0.1:6654", "unix:/run/x", "tcp:[::1]:0"]}}, cpus: "0,2-3", memory: 100MiB}
  b: {services: [south], machine: other, settings: {south: {listen: ["tcp:10.0.0.1:6654"]}}}
  c: {services: [route], replicas: 2, cpu_quota: 0.25}
  d: {services: [intake], settings: {intake: {listen: ["tcp:127.0.0.1:6663"]}}}
`)
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := m.Units[0], m.Units[1], m.Units[2]
	if got, want := strings.Join(a.Set, ";"), `south.listen=["tcp:0.0.0.0:6654","tcp:0.0.0.0:6653"]`; got != want {
		t.Errorf("set %s; want %s", got, want)
	}
	if a.Ports[0].Host != 6654 || a.Ports[1].Host != 6653 || b.Ports[0].Host != 6655 {
		t.Errorf("ports of the host are %v and %v", a.Ports, b.Ports)
	}
	if d := m.Units[3]; len(d.Ports) != 1 || d.Ports[0].Name != "openflow-in" || d.Set[0] != `intake.listen=["tcp:0.0.0.0:6663"]` || !d.Southern {
		t.Errorf("the intake has the ports %v, and set %v", d.Ports, d.Set)
	}
	if a.CPULimit != "3" || a.Variables[0] != (variable{"GOMEMLIMIT", "94371840"}) {
		t.Errorf("limits are %s processors and %v", a.CPULimit, a.Variables)
	}
	if c.CPULimit != "0.25" {
		t.Errorf("limit of %s processors, want 0.25", c.CPULimit)
	}
	if a.Scales || !c.Scales || c.Kind() != "StatefulSet" || a.Kind() != "Deployment" {
		t.Errorf("a scales %v as %s, c %v as %s", a.Scales, a.Kind(), c.Scales, c.Kind())
	}
}

// TestNoSecrets: what is exported is passed on, so a plan with a secret in it is
// refused; files with secrets may be named.
func TestNoSecrets(t *testing.T) {
	for text, allowed := range map[string]bool{
		`{south: {token: hunter2hunter2hunter2}}`: false, `{south: {token: "a.b/c"}}`: false, `{south: {key: ` + strings.Repeat("ab", 32) + `}}`: false,
		`{route: {bus_password: x}}`: false, `{south: {token_file: /etc/token, key: /etc/south.key}}`: true, `{south: {token: "", key: ""}}`: true,
	} {
		_, err := modelOf(t, "workers:\n  a: {services: [south, route], settings: "+text+"}\n")
		if (err == nil) != allowed {
			t.Errorf("%s: %v; want allowed %v", text, err, allowed)
		}
	}
}

// Events go by a transport that says whose they are; the plan given is left as
// it was.
func TestIdentified(t *testing.T) {
	p, err := plan.Parse("test.yaml", []byte("transport: ws\nworkers:\n  a: {services: [south]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := newModel(Config{Plan: p, Specs: specs()})
	if err != nil {
		t.Fatal(err)
	}
	if m.Plan.Events != plan.WS || !strings.Contains(m.YAML, "events: ws") || p.Events != plan.NATS {
		t.Errorf("events go by %s, and did by %s:\n%s", m.Plan.Events, p.Events, m.YAML)
	}
}

// TestSharedMemory: containers do not share memory.
func TestSharedMemory(t *testing.T) {
	for _, text := range []string{"transport: shm", "events: shm", "links: [{from: a, to: a, transport: shm}]"} {
		p, err := plan.Parse("test.yaml", []byte("workers:\n  a: {services: [south]}\n"+text+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := newModel(Config{Plan: p, Specs: specs()}); err == nil || !strings.Contains(err.Error(), "take grpc, ws or rest") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// An archive has the same octets each time, and in it what was packed.
func TestArchive(t *testing.T) {
	files := []File{{"b/c", []byte("2")}, {"a", []byte("1")}}
	one, err := archive("x.tar.gz", files)
	if err != nil {
		t.Fatal(err)
	}
	two, err := archive("x.tar.gz", files)
	if err != nil || !bytes.Equal(one.Data, two.Data) {
		t.Errorf("the second archive differs (%v)", err)
	}
	z, err := gzip.NewReader(bytes.NewReader(one.Data))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, h.Name+"="+string(data))
	}
	if text := strings.Join(got, " "); text != "a=1 b/c=2" {
		t.Errorf("in the archive is %s", text)
	}
}

func TestSplitImage(t *testing.T) {
	for reference, want := range map[string]string{
		"weft": "weft latest", "weft:1.0": "weft 1.0", "host:5000/weft": "host:5000/weft latest", "host:5000/a/weft:2": "host:5000/a/weft 2",
	} {
		if repository, tag := splitImage(reference); repository+" "+tag != want {
			t.Errorf("%s is %s and %s; want %s", reference, repository, tag, want)
		}
	}
}

// TestAutoscaled: what scales by the plan's model has as many instances as there
// may be, and is scaled by the metric of the model.
func TestAutoscaled(t *testing.T) {
	m, err := modelOf(t, `
workers:
  a: {services: [south]}
  b: {services: [route], autoscale: {min: 2, max: 4}}
`)
	if err != nil {
		t.Fatal(err)
	}
	b := m.Units[1]
	if len(b.Instances) != 4 || !b.Scales || !strings.Contains(m.YAML, "replicas: 4") {
		t.Errorf("%d instances, scales %v, of\n%s", len(b.Instances), b.Scales, m.YAML)
	}
	files, err := m.chart("p", m.Units, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Path == "values.yaml" && strings.Count(string(f.Data), "wanted: {metric: weft_scaler_wanted, minReplicas: 2}") != 1 {
			t.Errorf("%s:\n%s", f.Path, f.Data)
		}
	}
	text, err := written(m.vnfd(&b)).Readable()
	if err != nil || !strings.Contains(string(text), "min-number-of-instances: 2") || !strings.Contains(string(text), "weft_scaler_wanted") {
		t.Errorf("%v\n%s", err, text)
	}
}
