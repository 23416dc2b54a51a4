package qos

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// vsctl runs the program that changes a switch's database (ovs-vsctl(8)) with
// arguments, and returns its output. It runs no shell.
type vsctl func(ctx context.Context, args ...string) (string, error)

// vsctlOf returns the vsctl of a database.
func vsctlOf(cfg *Config, target string) vsctl {
	return func(ctx context.Context, args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, cfg.VSCtlTimeout)
		defer cancel()
		seconds := max(1, int((cfg.VSCtlTimeout+time.Second-1)/time.Second))
		all := append([]string(nil), cfg.VSCtlOptions...)
		all = append(all, "--db="+target, "--timeout="+strconv.Itoa(seconds), "--no-syslog", "--format=json", "--")
		cmd := exec.CommandContext(ctx, cfg.VSCtl, append(all, args...)...)
		cmd.WaitDelay = time.Second
		var out, errs bounded
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			if ctx.Err() != nil {
				return "", fmt.Errorf("database %s: no answer within %v", target, cfg.VSCtlTimeout)
			}
			if text := strings.TrimSpace(errs.String()); text != "" {
				err = errors.New(text)
			}
			return "", fmt.Errorf("database %s: %w", target, err)
		}
		return out.String(), nil
	}
}

// bounded keeps the first 64 KiB of a program's output.
type bounded struct{ kept bytes.Buffer }

// Write accepts everything, and keeps as much as fits.
func (b *bounded) Write(p []byte) (int, error) {
	b.kept.Write(p[:min(len(p), max(0, 1<<16-b.kept.Len()))])
	return len(p), nil
}

// String returns the kept output. It replaces octets that are not UTF-8, which
// errors could not carry, with U+FFFD.
func (b *bounded) String() string { return strings.ToValidUTF8(b.kept.String(), "\ufffd") }

// portName matches the names of ports that we pass to the program: one word, and
// no option.
var portName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:@+-]{0,63}$`)

// The keys that mark our rows in a database.
const (
	keyPort = "weft-port"
	keySum  = "weft-sum"
)

// qosRow is one of our rows in the database's table QoS.
type qosRow struct {
	uuid   string
	sum    string
	queues []string // uuids
}

// bring sets the queues of a port in the database of its switch to those of m, or
// removes them if m is removing.
func bring(ctx context.Context, run vsctl, m *api.QosQueues, name string) error {
	if !portName.MatchString(name) {
		return fmt.Errorf("port %d of switch %s is called %q, which cannot be passed on; rename it", m.Port, m.Dpid, name)
	}
	if err := checkBridge(ctx, run, m.Dpid, name); err != nil {
		return err
	}
	rows, err := findRows(ctx, run, portKey(m.Dpid, m.Port))
	if err != nil {
		return err
	}
	text, err := run(ctx, "get", "port", name, "qos")
	if err != nil {
		return err
	}
	has := uuidForm.FindString(text)
	ours := false
	for _, r := range rows {
		ours = ours || r.uuid == has
	}
	if has != "" && !ours {
		if m.State == removing && len(rows) == 0 {
			return nil
		}
		return fmt.Errorf("port %s has queues that somebody else has made; take them away first: ovs-vsctl clear port %s qos", name, name)
	}
	sum := sumOf(m)
	if m.State != removing && len(rows) == 1 && ours && rows[0].sum == sum {
		return nil
	}
	var args []string
	if m.State == removing {
		args = append(args, "--if-exists", "clear", "port", name, "qos")
	} else {
		args = append(args, "set", "port", name, "qos=@qos")
	}
	for _, r := range rows {
		args = append(args, "--", "--if-exists", "destroy", "qos", r.uuid)
		for _, q := range r.queues {
			args = append(args, "--", "--if-exists", "destroy", "queue", q)
		}
	}
	if m.State != removing {
		args = append(args, creation(m, sum)...)
	}
	_, err = run(ctx, args...)
	return err
}

// creation returns the commands that make the rows of a port's queues, rates in
// bits per second and bursts in bits, as linux-htb takes them
// (ovs-vswitchd.conf.db(5), QoS and Queue).
func creation(m *api.QosQueues, sum string) []string {
	row := []string{"--", "--id=@qos", "create", "qos", "type=linux-htb",
		`external-ids:` + keyPort + `="` + portKey(m.Dpid, m.Port) + `"`, "external-ids:" + keySum + "=" + `"` + sum + `"`}
	if m.MaxKbps != 0 {
		row = append(row, fmt.Sprintf("other-config:max-rate=%d", uint64(m.MaxKbps)*1000))
	}
	var queues []string
	for _, q := range m.Queues {
		row = append(row, fmt.Sprintf("queues:%d=@q%d", q.Id, q.Id))
		queues = append(queues, "--", fmt.Sprintf("--id=@q%d", q.Id), "create", "queue", `external-ids:`+keyPort+`="`+portKey(m.Dpid, m.Port)+`"`)
		for _, v := range []struct {
			key   string
			value uint64
		}{{"min-rate", uint64(q.MinKbps) * 1000}, {"max-rate", uint64(q.MaxKbps) * 1000}, {"burst", uint64(q.BurstBytes) * 8}, {"priority", uint64(q.Priority)}} {
			if v.value != 0 {
				queues = append(queues, fmt.Sprintf("other-config:%s=%d", v.key, v.value))
			}
		}
	}
	return append(row, queues...)
}

// sumOf returns a hash that distinguishes two configurations of a port.
func sumOf(m *api.QosQueues) string {
	h := sha256.New()
	fmt.Fprintln(h, m.MaxKbps)
	for _, q := range m.Queues {
		fmt.Fprintln(h, q.Id, q.MinKbps, q.MaxKbps, q.BurstBytes, q.Priority)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// checkBridge checks that a port belongs to the right switch: the database may be
// another machine's.
func checkBridge(ctx context.Context, run vsctl, dpid, name string) error {
	bridge, err := run(ctx, "port-to-br", name)
	if err != nil {
		return err
	}
	if bridge = strings.TrimSpace(bridge); !portName.MatchString(bridge) {
		return fmt.Errorf("the bridge of port %s is called %q, which cannot be passed on; rename it", name, bridge)
	}
	text, err := run(ctx, "get", "bridge", bridge, "datapath_id")
	if err != nil {
		return err
	}
	if got, err := flow.ParseDPID(strings.Trim(strings.TrimSpace(text), `"`)); err != nil || got.String() != dpid {
		return fmt.Errorf("port %s is of switch %s in that database, not of %s; correct qos.ovsdb or qos.ovsdb_switches", name, strings.TrimSpace(text), dpid)
	}
	return nil
}

var uuidForm = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// findRows returns the rows that we have made for a port.
func findRows(ctx context.Context, run vsctl, key string) ([]qosRow, error) {
	text, err := run(ctx, "--columns=_uuid,external_ids,queues", "find", "qos", `external_ids:`+keyPort+`="`+key+`"`)
	if err != nil {
		return nil, err
	}
	var found struct {
		Data [][3]json.RawMessage `json:"data"`
	}
	if strings.TrimSpace(text) != "" {
		if err := json.Unmarshal([]byte(text), &found); err != nil {
			return nil, fmt.Errorf("what the database says of QoS is not understood: %w", err)
		}
	}
	var rows []qosRow
	for _, d := range found.Data {
		r := qosRow{uuid: uuidForm.FindString(string(d[0])), queues: uuidForm.FindAllString(string(d[2]), -1)}
		var ids [2]json.RawMessage
		var pairs [][2]string
		if json.Unmarshal(d[1], &ids) == nil && json.Unmarshal(ids[1], &pairs) == nil {
			for _, p := range pairs {
				if p[0] == keySum {
					r.sum = p[1]
				}
			}
		}
		if r.uuid != "" {
			rows = append(rows, r)
		}
	}
	return rows, nil
}
