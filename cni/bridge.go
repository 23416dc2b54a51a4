package cni

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/containernetworking/cni/pkg/types"
)

// attachment is a function's interface and what the node has for it. All names follow from
// the container's identifier, so nothing need be stored to delete them.
type attachment struct {
	network, container, iface string

	bridge string // its switch
	host   string // the switch's end of the interface
	up     string // the switch's port to the node's switch
	down   string // the other end
}

func attach(network, container, iface string) attachment {
	id := hex.EncodeToString(sum(network + "\x00" + container + "\x00" + iface)[:6])
	return attachment{network, container, iface, "wb" + id, "wv" + id, "wu" + id, "wd" + id}
}

// The keys by which switches are found again. Open vSwitch keeps them.
const (
	keyNetwork   = "weft-cni-network"
	keyContainer = "weft-cni-container"
	keyIface     = "weft-cni-iface"
)

// vsctlTime is how long Open vSwitch may take for a change.
const vsctlTime = 20 * time.Second

// vsctl runs ovs-vsctl and returns what it prints.
func (c *Config) vsctl(ctx context.Context, args ...string) (string, error) {
	all := []string{fmt.Sprintf("--timeout=%d", int(vsctlTime/time.Second))}
	if c.Database != "" {
		all = append(all, "--db="+c.Database)
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, "ovs-vsctl", append(all, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", types.NewError(types.ErrTryAgainLater, "Open vSwitch of this node does not do as asked",
			fmt.Sprintf("ovs-vsctl: %v: %s", err, strings.TrimSpace(errs.String())))
	}
	return out.String(), nil
}

// nodeID draws the datapath identifier of the node's switch, which keeps it.
func nodeID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	b[0] |= 1
	return hex.EncodeToString(b[:])
}

// functionID returns the datapath identifier of a function's switch: the same whenever a
// container of that name starts, so that what is set for the switch counts again.
func functionID(network, name, iface string) string {
	b := sum(network + "\x00" + name + "\x00" + iface)[:8]
	b[0] |= 1
	return hex.EncodeToString(b)
}

// quote returns a string value as ovs-vsctl takes it.
func quote(s string) string { return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"` }

// addBridge returns the arguments that make a switch, if it is not there.
func (c *Config) addBridge(name, id, description string, there bool) []string {
	args := []string{"--may-exist", "add-br", name}
	if !there {
		args = append(args, "--", "set", "bridge", name, "fail_mode=secure", "protocols=OpenFlow10,OpenFlow13",
			"other_config:datapath-id="+id, "other_config:dp-desc="+quote(description))
		if c.Datapath != "" {
			args = append(args, "datapath_type="+c.Datapath)
		}
	}
	return append(append(args, "--", "set-controller", name), c.Controllers...)
}

// exists reports whether a switch is there.
func (c *Config) exists(ctx context.Context, name string) (bool, error) {
	out, err := c.vsctl(ctx, "--if-exists", "get", "bridge", name, "name")
	return strings.TrimSpace(out) != "", err
}

// connect makes the function's switch with its two ports and the node's switch with its
// links, in one transaction.
func (c *Config) connect(ctx context.Context, a attachment, description string) error {
	own, err := c.exists(ctx, a.bridge)
	if err != nil {
		return err
	}
	node, err := c.exists(ctx, c.Bridge)
	if err != nil {
		return err
	}
	patch := func(bridge, port, peer, more string) []string {
		args := []string{"--", "--may-exist", "add-port", bridge, port, "--", "set", "interface", port, "type=patch", "options:peer=" + peer}
		if more != "" {
			args = append(args, more)
		}
		return args
	}
	args := c.addBridge(c.Bridge, nodeID(), "node", node)
	args = append(append(args, "--"), c.addBridge(a.bridge, functionID(a.network, description, a.iface), description, own)...)
	args = append(args, "--", "set", "bridge", a.bridge, "external_ids:"+keyNetwork+"="+quote(a.network),
		"external_ids:"+keyContainer+"="+quote(a.container), "external_ids:"+keyIface+"="+quote(a.iface),
		"--", "--may-exist", "add-port", a.bridge, a.host, "--", "set", "interface", a.host, "ofport_request=1")
	args = append(args, patch(a.bridge, a.up, a.down, "ofport_request=2")...)
	args = append(args, patch(c.Bridge, a.down, a.up, "")...)
	for _, p := range c.Peers {
		port := "wx" + hex.EncodeToString(sum(p))[:12]
		args = append(args, "--", "--may-exist", "add-port", c.Bridge, port, "--", "set", "interface", port, "type=vxlan",
			"options:remote_ip="+quote(p), fmt.Sprintf("options:key=%d", c.VNI))
	}
	if _, err := c.vsctl(ctx, args...); err != nil {
		return err
	}
	for _, port := range []string{a.host, a.up, a.down} {
		out, err := c.vsctl(ctx, "get", "interface", port, "ofport", "error")
		if err != nil {
			return err
		}
		if f := strings.Fields(out); len(f) == 0 || f[0] == "-1" || f[0] == "[]" {
			return types.NewError(types.ErrTryAgainLater, "Open vSwitch has not taken port "+port, strings.Join(f, " "))
		}
	}
	return nil
}

func sum(s string) []byte { h := sha256.Sum256([]byte(s)); return h[:] }

// disconnect removes what connect makes for a function. The node's switch stays.
func (c *Config) disconnect(ctx context.Context, a attachment) error {
	_, err := c.vsctl(ctx, "--if-exists", "del-port", a.down, "--", "--if-exists", "del-br", a.bridge)
	return err
}

// attachments returns those of the network that the node has.
func (c *Config) attachments(ctx context.Context) ([]attachment, error) {
	out, err := c.vsctl(ctx, "--format=csv", "--data=bare", "--no-headings", "--columns=external_ids", "find", "bridge",
		"external_ids:"+keyNetwork+"="+quote(c.Name))
	if err != nil {
		return nil, err
	}
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("ovs-vsctl find: %w", err)
	}
	var list []attachment
	for _, r := range rows {
		ids := map[string]string{}
		for _, pair := range strings.Fields(r[0]) {
			k, v, _ := strings.Cut(pair, "=")
			ids[k] = v
		}
		list = append(list, attach(c.Name, ids[keyContainer], ids[keyIface]))
	}
	return list, nil
}
