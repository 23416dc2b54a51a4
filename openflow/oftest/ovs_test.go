package oftest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/openflow"
)

// openVSwitch is a private Open vSwitch with one bridge of four ports, in a
// network namespace of its own. Its datapath is the userspace one, with ports
// that are driven over a socket and recorded in files: no device is made, and
// all is gone when the test is.
type openVSwitch struct {
	t     testing.TB
	dir   string
	ctl   net.Conn // management commands
	reply *json.Decoder
	of    net.Conn // OpenFlow
	in    *bufio.Reader
	xid   uint32
	async [][]byte          // messages that are no answers
	read  map[flow.Port]int // octets of the record of a port that have been read
}

const ovsPorts = 4

// startOVS starts Open vSwitch; the test fails where it is not installed.
func startOVS(t testing.TB, version openflow.Version) *openVSwitch {
	t.Helper()
	dir, err := os.MkdirTemp("", "oftest") // short: a socket's path has 107 octets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if log, _ := os.ReadFile(filepath.Join(dir, "ovs-vswitchd.log")); t.Failed() {
			t.Logf("Open vSwitch's log ends with\n%s", log[max(0, len(log)-1000):])
		}
		os.RemoveAll(dir)
	})
	o := &openVSwitch{t: t, dir: dir, xid: 1 << 30, read: map[flow.Port]int{}}
	o.run("ovsdb-tool", "create", o.path("conf.db"), "/usr/share/openvswitch/vswitch.ovsschema")
	o.daemon("ovsdb-server", o.path("conf.db"), "--remote=punix:"+o.path("db.sock"), "--unixctl="+o.path("ovsdb.ctl"))
	o.await("ovsdb-server", "db.sock")
	o.run("ovs-vsctl", "--db=unix:"+o.path("db.sock"), "--no-wait", "init")
	o.daemon("ovs-vswitchd", "unix:"+o.path("db.sock"), "--unixctl="+o.path("vswitchd.ctl"), "--enable-dummy", "--disable-system")
	o.await("ovs-vswitchd", "vswitchd.ctl")
	args := []string{"--db=unix:" + o.path("db.sock"), "--timeout=10", "set", "Open_vSwitch", ".", "other_config:vlan-limit=2",
		"--", "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=dummy", "fail_mode=secure",
		"protocols=OpenFlow10,OpenFlow13", "other_config:datapath-id=00000000000000aa", "other_config:disable-in-band=true"}
	for p := 1; p <= ovsPorts; p++ {
		name := fmt.Sprintf("p%d", p)
		args = append(args, "--", "add-port", "br0", name, "--", "set", "interface", name, "type=dummy",
			fmt.Sprintf("ofport_request=%d", p), "options:tx_pcap="+o.path(name))
	}
	o.run("ovs-vsctl", args...)
	o.ctl = o.dial("vswitchd.ctl")
	o.reply = json.NewDecoder(o.ctl)
	o.of = o.dial("br0.mgmt")
	o.in = bufio.NewReader(o.of)
	o.write(version.AppendHello(nil, 1))
	o.message() // its hello
	o.write(version.AppendSetConfig(nil, 2, 0, 0xffff))
	return o
}

func (o *openVSwitch) path(name string) string { return filepath.Join(o.dir, name) }

func (o *openVSwitch) env() []string {
	return append(os.Environ(), "OVS_RUNDIR="+o.dir, "OVS_DBDIR="+o.dir, "OVS_LOGDIR="+o.dir, "OVS_SYSCONFDIR="+o.dir)
}

func (o *openVSwitch) run(program string, args ...string) {
	o.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = o.env()
	if out, err := cmd.CombinedOutput(); err != nil {
		o.t.Fatalf("%s: %v (apt-get install openvswitch-switch)\n%s", program, err, out)
	}
}

// daemon starts a program in a network namespace of its own; it ends with the test.
func (o *openVSwitch) daemon(program string, args ...string) {
	o.t.Helper()
	cmd := exec.Command(program, append(args, "-vconsole:off", "--log-file="+o.path(program+".log"))...)
	cmd.Env = o.env()
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		o.t.Fatalf("%s: %v (root? apt-get install openvswitch-switch)", program, err)
	}
	o.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// await waits until a program listens at a socket, which is a while after the
// socket's file is there.
func (o *openVSwitch) await(program, name string) {
	o.t.Helper()
	testwait.Until(o.t, program+" listens at "+name, func() bool {
		c, err := net.Dial("unix", o.path(name))
		if err != nil {
			return false
		}
		return c.Close() == nil
	})
}

func (o *openVSwitch) dial(name string) net.Conn {
	o.t.Helper()
	c, err := net.Dial("unix", o.path(name))
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { c.Close() })
	return c
}

// command gives a command of ovs-appctl.
func (o *openVSwitch) command(method string, params ...string) string {
	o.t.Helper()
	if params == nil {
		params = []string{}
	}
	if err := json.NewEncoder(o.ctl).Encode(map[string]any{"method": method, "params": params, "id": 1}); err != nil {
		o.t.Fatal(err)
	}
	var r struct{ Result, Error *string }
	if err := o.reply.Decode(&r); err != nil {
		o.t.Fatal(err)
	}
	if r.Error != nil {
		o.t.Fatalf("%s %s: %s", method, strings.Join(params, " "), *r.Error)
	}
	if r.Result == nil {
		return ""
	}
	return *r.Result
}

func (o *openVSwitch) write(b []byte) {
	o.t.Helper()
	if _, err := o.of.Write(b); err != nil {
		o.t.Fatal(err)
	}
}

// message reads one message.
func (o *openVSwitch) message() []byte {
	o.t.Helper()
	if err := o.of.SetReadDeadline(time.Now().Add(testwait.Limit)); err != nil {
		o.t.Fatal(err)
	}
	head := make([]byte, openflow.HeaderLen)
	if _, err := io.ReadFull(o.in, head); err != nil {
		o.t.Fatal(err)
	}
	msg := append(head, make([]byte, int(binary.BigEndian.Uint16(head[2:]))-len(head))...)
	if _, err := io.ReadFull(o.in, msg[len(head):]); err != nil {
		o.t.Fatal(err)
	}
	return msg
}

// exchange sends a message and returns what the switch answers before it
// confirms it by barrier.
func (o *openVSwitch) exchange(v openflow.Version, msg []byte) (answers [][]byte) {
	o.t.Helper()
	o.xid++
	o.write(v.AppendBarrierRequest(bytes.Clone(msg), o.xid))
	for {
		m := o.message()
		switch h, _ := openflow.ParseHeader(m); {
		case h.Type == openflow.TypeBarrierReply && h.Xid == o.xid:
			return answers
		case h.Type == openflow.TypePacketIn, h.Type == openflow.TypeFlowRemoved, h.Type == openflow.TypePortStatus:
			o.async = append(o.async, m)
		default:
			answers = append(answers, m)
		}
	}
}

// sent returns the frames that have left by a port since the last call, as far
// as they have been recorded.
func (o *openVSwitch) sent(p flow.Port) (frames [][]byte) {
	o.t.Helper()
	b, err := os.ReadFile(o.path(fmt.Sprintf("p%d", p)))
	if err != nil {
		o.t.Fatal(err)
	}
	const fileHeader, frameHeader = 24, 16
	at := max(o.read[p], fileHeader)
	for len(b) >= at+frameHeader {
		n := int(binary.NativeEndian.Uint32(b[at+8:]))
		if len(b) < at+frameHeader+n {
			break
		}
		frames = append(frames, b[at+frameHeader:at+frameHeader+n])
		at += frameHeader + n
	}
	o.read[p] = at
	return frames
}
