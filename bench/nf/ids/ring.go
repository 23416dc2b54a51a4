package ids

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

// port is a packet socket on an interface, with a ring of what the kernel received
// there (packet(7), TPACKET_V2).
type port struct {
	name  string
	fd    int
	ring  []byte
	frame int // bytes of a slot
	slots int
	next  int // slot to read next

	// what is to be sent, frames in the other port's ring
	messages []mmsghdr
	vectors  []unix.Iovec
	queued   int

	sent, refused uint64
}

// mmsghdr is that of sendmmsg(2).
type mmsghdr struct {
	header unix.Msghdr
	length uint32
	_      [4]byte
}

const (
	burst     = 32 // most frames that are sent at once
	ringBytes = 4 << 20
	reserved  = 16 // bytes before a frame, for its tag
)

// openPort opens an interface of this thread's namespace.
func openPort(name string) (p *port, err error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("interface %s: %w", name, err)
	}
	p = &port{name: name, messages: make([]mmsghdr, burst), vectors: make([]unix.Iovec, burst)}
	if p.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		return nil, fmt.Errorf("interface %s: open a packet socket, which needs root: %w", name, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("interface %s: %w", name, err), p.close())
			p = nil
		}
	}()
	for p.frame = 2048; p.frame < i.MTU+256; p.frame *= 2 {
	}
	p.slots = max(64, ringBytes/p.frame)
	block := max(p.frame, 1<<16)
	request := unix.TpacketReq{Block_size: uint32(block), Block_nr: uint32(p.slots * p.frame / block), Frame_size: uint32(p.frame), Frame_nr: uint32(p.slots)}
	promiscuous := unix.PacketMreq{Ifindex: int32(i.Index), Type: unix.PACKET_MR_PROMISC}
	err = errors.Join(unix.SetsockoptInt(p.fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V2),
		unix.SetsockoptInt(p.fd, unix.SOL_PACKET, unix.PACKET_RESERVE, reserved),
		unix.SetsockoptInt(p.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
		unix.SetsockoptInt(p.fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1),
		unix.SetsockoptTpacketReq(p.fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &request),
		unix.SetsockoptPacketMreq(p.fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &promiscuous))
	if err != nil {
		return p, err
	}
	if p.ring, err = unix.Mmap(p.fd, 0, p.slots*p.frame, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return p, err
	}
	for n := range p.messages {
		h := &p.messages[n].header
		h.Iov = &p.vectors[n]
		h.SetIovlen(1)
	}
	return p, unix.Bind(p.fd, &unix.SockaddrLinklayer{Protocol: binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL}), Ifindex: i.Index})
}

func (p *port) close() error {
	var err error
	if p.ring != nil {
		err = unix.Munmap(p.ring)
	}
	return errors.Join(err, unix.Close(p.fd))
}

// Offsets in struct tpacket2_hdr.
const (
	statusAt, lengthAt, snapAt, macAt, tciAt, tpidAt = 0, 4, 8, 12, 24, 26
)

func (p *port) slot(n int) []byte { return p.ring[n*p.frame : (n+1)*p.frame] }

// peek returns the frame that is ahead of the oldest by so many, with its tag; ok is
// false if none has come. A frame that the slot could not hold whole is nil.
func (p *port) peek(ahead int) (frame []byte, ok bool) {
	s := p.slot((p.next + ahead) % p.slots)
	status := status(s)
	if ahead >= p.slots || status&unix.TP_STATUS_USER == 0 {
		return nil, false
	}
	length, snap := binary.NativeEndian.Uint32(s[lengthAt:]), binary.NativeEndian.Uint32(s[snapAt:])
	mac := int(binary.NativeEndian.Uint16(s[macAt:]))
	if length != snap || mac+int(snap) > len(s) {
		return nil, true
	}
	if frame = s[mac : mac+int(snap)]; status&unix.TP_STATUS_VLAN_VALID == 0 || len(frame) < 12 {
		return frame, true
	}
	tpid := uint16(0x8100)
	if status&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
		tpid = binary.NativeEndian.Uint16(s[tpidAt:])
	}
	frame = s[mac-4 : mac+int(snap)] // into what is reserved
	copy(frame, frame[4:16])
	binary.BigEndian.PutUint16(frame[12:], tpid)
	binary.BigEndian.PutUint16(frame[14:], binary.NativeEndian.Uint16(s[tciAt:]))
	return frame, true
}

// release gives the oldest frames back to the kernel.
func (p *port) release(n int) {
	for range n {
		setStatus(p.slot(p.next), unix.TP_STATUS_KERNEL)
		p.next = (p.next + 1) % p.slots
	}
}

// queue has a frame sent with the next flush, until which it must not change.
func (p *port) queue(frame []byte) {
	v := &p.vectors[p.queued]
	v.Base = unsafe.SliceData(frame)
	v.SetLen(len(frame))
	p.queued++
}

// flush sends what is queued.
func (p *port) flush() error {
	for at := 0; at < p.queued; {
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(p.fd), uintptr(unsafe.Pointer(&p.messages[at])), uintptr(p.queued-at), 0, 0, 0)
		switch errno {
		case 0:
			at += int(n)
			p.sent += uint64(n)
		case unix.EINTR:
		case unix.EAGAIN, unix.ENOBUFS:
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLOUT}}, 10)
		case unix.EBADF, unix.ENOTSOCK, unix.EFAULT:
			return fmt.Errorf("interface %s: send: %w", p.name, errno)
		default: // this frame cannot be sent: it is too long, or the interface is down
			at++
			p.refused++
		}
	}
	p.queued = 0
	return nil
}

// dropped returns how many frames the kernel had no slot for since the last call.
func (p *port) dropped() uint64 {
	s, err := unix.GetsockoptTpacketStats(p.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return 0
	}
	return uint64(s.Drops)
}
