package apps

import (
	"bytes"
	"context"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
)

var update = flag.Bool("update", false, "write sdk/python/src/weft/api.binpb anew")

// sdk is the Python package's folder.
const sdk = "../../sdk/python"

// descriptors returns the .proto files of Weft, each behind those it needs.
func descriptors() *descriptorpb.FileDescriptorSet {
	set := &descriptorpb.FileDescriptorSet{}
	done := map[string]bool{}
	var add func(f protoreflect.FileDescriptor)
	add = func(f protoreflect.FileDescriptor) {
		if done[f.Path()] {
			return
		}
		done[f.Path()] = true
		for i := range f.Imports().Len() {
			add(f.Imports().Get(i).FileDescriptor)
		}
		set.File = append(set.File, protodesc.ToFileDescriptorProto(f))
	}
	byPath := map[string]protoreflect.FileDescriptor{}
	protoregistry.GlobalFiles.RangeFilesByPackage(api.File_apps_proto.Package(), func(f protoreflect.FileDescriptor) bool {
		byPath[f.Path()] = f
		return true
	})
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		add(byPath[path])
	}
	return set
}

// TestDescriptors: what the Python package knows of the messages is what they are.
func TestDescriptors(t *testing.T) {
	file := filepath.Join(sdk, "src/weft/api.binpb")
	want := descriptors()
	if *update {
		text, err := proto.MarshalOptions{Deterministic: true}.Marshal(want)
		if err == nil {
			err = os.WriteFile(file, text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(text, got); err != nil || !proto.Equal(got, want) {
		t.Errorf("%s is not what the .proto files say (%v); run go test ./deploy/apps -run TestDescriptors -update", file, err)
	}
}

// python returns an interpreter that has what the package's transports need.
func python(t *testing.T) string {
	t.Helper()
	var said []byte
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		out, err := exec.Command(name, "-c", "import grpc, google.protobuf, websocket").CombinedOutput()
		if err == nil {
			return name
		}
		said = append(said, out...)
	}
	t.Fatalf("no Python with grpcio, protobuf and websocket-client; run make setup, or apt-get install python3-grpcio python3-protobuf python3-websocket\n%s", said)
	return ""
}

// output is what a process has said so far.
type output struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// run starts a script of the package in Python, which ends with the test.
func run(t *testing.T, args ...string) *output {
	t.Helper()
	cmd := exec.Command(python(t), args...)
	cmd.Dir = sdk
	cmd.Env = append(os.Environ(), "PYTHONPATH=src", "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1")
	said := &output{}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }() // it is killed, or the test looks at what it did
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // or it has ended
		<-done
		if t.Failed() {
			t.Logf("%s said:\n%s", strings.Join(args, " "), said)
		}
	})
	return said
}

// TestPythonUnits runs the Python package's own tests.
func TestPythonUnits(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, python(t), "-m", "unittest", "discover", "-s", "tests")
	cmd.Dir = sdk
	cmd.Env = append(os.Environ(), "PYTHONPATH=src", "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestPythonStage: the example of ten lines, over every transport.
func TestPythonStage(t *testing.T) {
	for _, scheme := range []string{"http", "ws", "grpc"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			w := serve(t, nil)
			run(t, "examples/blocker.py", scheme+"://"+w.address)
			info := w.runtime.wait(t, "blocker")
			want := map[string]string{"http": "rest"}[scheme]
			if want == "" {
				want = scheme
			}
			if info.Transport != want || info.Kind != Stage {
				t.Errorf("attached as %+v", info)
			}
			list := batch(22, 23, 443, 23)
			if err := info.App.Packets(context.Background(), list); err != nil {
				t.Fatal(err)
			}
			for i, want := range []flow.Verdict{flow.Next, flow.Drop, flow.Next, flow.Drop} {
				if list[i].Verdict != want {
					t.Errorf("packet %d has verdict %d, want %d", i, list[i].Verdict, want)
				}
			}
			d := list[1].Decision
			if len(d.Flows) != 1 || d.Ops[0].Switch != 7 || d.Flows[0].Entry.Priority != 20000 || d.Flows[0].Entry.IdleTimeout != 60 ||
				d.Flows[0].Entry.Match.Key.TPDst != 23 || len(d.Flows[0].Entry.Apply) != 0 {
				t.Errorf("it decided %+v", d)
			}
		})
	}
}

// TestPythonApp: an app that calls methods while it decides, sends packets,
// and comes back when it was thrown out.
func TestPythonApp(t *testing.T) {
	for _, scheme := range []string{"http", "ws", "grpc"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			w := serve(t, func(c *Config) { c.Limits.Lease = 3 * time.Second })
			run(t, "tests/everything.py", scheme+"://"+w.address)
			for round := range 2 {
				var info AppInfo
				testwait.Until(t, "it attaches", func() (ok bool) { info, ok = w.runtime.find("everything"); return ok })
				list := batch(80)
				if err := info.App.Packets(context.Background(), list); err != nil {
					t.Fatal(err)
				}
				d := list[0].Decision
				if list[0].Verdict != flow.Done || len(d.Outs) != 2 || len(d.Groups) != 2 || len(d.Flows) != 2 || len(d.Ops) != 7 ||
					string(d.Outs[0].Data) != string(list[0].In.Data) || string(d.Outs[1].Data) != "10.0.0.1 at 02:00:00:00:00:01; 404: 5" ||
					d.Flows[1].Command != flow.DeleteStrict {
					t.Errorf("round %d: verdict %d, operations %v: outs %v", round, list[0].Verdict, d.Ops, d.Outs)
				}
				w.apps.find("everything").end(errStops)
				w.runtime.leaves(t, "everything")
			}
		})
	}
}

// TestDocuments: the documents show the example as it is, and messages that
// are messages.
func TestDocuments(t *testing.T) {
	example := read(t, filepath.Join(sdk, "examples/blocker.py"))
	if n := len(regexp.MustCompile(`(?m)^.*\S`).FindAllString(example, -1)); n > 10 {
		t.Errorf("the example has %d lines; want at most ten", n)
	}
	for _, name := range []string{"../../docs/apps.md", filepath.Join(sdk, "README.md")} {
		if !strings.Contains(read(t, name), "```python\n"+example+"```\n") {
			t.Errorf("%s does not show examples/blocker.py as it is", name)
		}
	}
	portal := read(t, filepath.Join(sdk, "examples/portal.py"))
	if n := strings.Count(portal, "\n"); n > 25 || !strings.Contains(read(t, "../../docs/apps.md"), "```python\n"+portal+"```\n") {
		t.Errorf("docs/apps.md does not show examples/portal.py as it is, or its %d lines are more than 25", n)
	}
	found := 0
	for _, m := range regexp.MustCompile("(?s)```json (\\w+)\n(.*?)```").FindAllStringSubmatch(read(t, "../../docs/apps.md"), -1) {
		kind, err := protoregistry.GlobalTypes.FindMessageByName(api.File_apps_proto.Package().Append(protoreflect.Name(m[1])))
		if err != nil {
			t.Errorf("%s: %v", m[1], err)
			continue
		}
		found++
		if err := readJSON([]byte(m[2]), kind.New().Interface()); err != nil {
			t.Errorf("%s\n%v", m[2], err)
		}
	}
	if found < 6 {
		t.Errorf("only %d messages found in docs/apps.md", found)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
