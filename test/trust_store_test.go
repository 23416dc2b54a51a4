package test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow/oftest"
)

// trustDamagedStore has 50 entries of the operator's on a switch, flips three
// octets of the store while the controller is down, and checks that the switch
// keeps all entries, that health says what is wrong, and that nothing can be
// changed until the store has been repaired from a backup. Then the directory is
// emptied, and the entries stay until the loss is accepted.
func trustDamagedStore(t *testing.T, f *faults) {
	const entries = 50
	d := f.prepare(t, "")
	data := filepath.Join(d.dir, "data")
	start := func() (stop func()) {
		p := d.run("weft", d.weft, "up", "--data-dir", data, "--quiet", "--listen", d.openflow, "--http", d.north)
		eventually(t, "the northbound answers", func() bool {
			_, err := d.command(t.Context(), "get", "workers")
			return err == nil
		})
		return p.Stop
	}
	must := func(args ...string) {
		t.Helper()
		if _, err := d.command(t.Context(), args...); err != nil {
			t.Fatalf("%v\n%s", err, d.logs())
		}
	}
	sw := oftest.NewDevice(oftest.Config{DPID: 1, Ports: 2}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			_ = sw.Dial(ctx, "tcp", d.openflow) // the controller is away at times
			time.Sleep(20 * time.Millisecond)
		}
	}()
	operators := func() (n int) {
		for _, e := range sw.Flows() {
			if e.Cookie.Owner() == flow.OwnerOperator {
				n++
			}
		}
		return n
	}
	compared := func() {
		t.Helper()
		eventually(t, "the switch is compared with the store", func() bool {
			out, err := d.command(t.Context(), "get", "sync", "-o", "json")
			return err == nil && strings.Contains(strings.ReplaceAll(string(out), " ", ""), `"state":"in_sync"`)
		})
	}
	var text strings.Builder
	for i := range entries {
		fmt.Fprintf(&text, "- {dpid: 1, priority: %d, match: {in_port: 1}, actions: ['output:2']}\n", 100+i)
	}
	stop := start()
	eventually(t, "the switch is connected", func() bool { return len(sw.Flows()) > 0 })
	must("flow", "add", "-f", d.write("flows.yaml", text.String()))
	file := filepath.Join(d.dir, "backup")
	must("store", "backup", file)
	stop()
	if n := operators(); n != entries {
		t.Fatalf("%d entries on the switch, want %d", n, entries)
	}

	blocks, _ := filepath.Glob(filepath.Join(data, "jetstream", "*", "streams", "KV_weft-flowrules-flows", "msgs", "*.blk"))
	if len(blocks) == 0 {
		t.Fatal("the store has no files")
	}
	block, err := os.ReadFile(blocks[0])
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		block[len(block)/2+i] ^= 0x55
	}
	if err := os.WriteFile(blocks[0], block, 0o600); err != nil {
		t.Fatal(err)
	}
	stop = start()
	compared()
	if n := operators(); n != entries {
		t.Errorf("%d entries on the switch after octets of the store were flipped, want %d", n, entries)
	}
	eventually(t, "health says that entries are missing", func() bool {
		health, _ := d.store()
		return strings.Contains(health, "missing")
	})
	if _, err := d.command(t.Context(), "flow", "delete", "--all"); err == nil || !strings.Contains(err.Error(), "weft store repair") {
		t.Errorf("a change of a damaged store: %v", err)
	}
	must("store", "repair", "--from", file)
	eventually(t, "all entries are wanted again", func() bool {
		out, err := d.command(t.Context(), "get", "flows", "-o", "json")
		return err == nil && strings.Count(string(out), `"operator"`) == entries && operators() == entries
	})
	if health, err := d.store(); health != "" || err != nil {
		t.Errorf("the store is %q after its repair, %v", health, err)
	}
	stop()

	time.Sleep(12 * time.Second) // the entries must be older than the new store, by more than clocks may differ
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}
	stop = start()
	defer func() { stop() }()
	eventually(t, "the emptied store is noticed", func() bool {
		health, _ := d.store()
		return strings.Contains(health, "emptied")
	})
	if n := operators(); n != entries {
		t.Errorf("%d entries on the switch after the data directory was emptied, want %d", n, entries)
	}
	must("store", "repair", "--accept-loss")
	eventually(t, "the entries are removed once the loss is accepted", func() bool { return operators() == 0 })
}

// store returns the damages of the store.
func (d *deployment) store() (damage string, err error) {
	out, err := d.command(context.Background(), "store", "status", "-o", "json")
	var m struct {
		Buckets []struct{ Damage string }
	}
	if err == nil {
		err = json.Unmarshal(out, &m)
	}
	for _, b := range m.Buckets {
		damage += b.Damage
	}
	return damage, err
}
