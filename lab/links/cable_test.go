package links

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/internal/testwait"
)

// socketCable is a cable between two socket pairs instead of TAP devices; it
// returns the outer ends.
func socketCable(t *testing.T, k *cable) (c *Cables, a, b int) {
	t.Helper()
	c, err := NewCables()
	if err != nil {
		t.Fatal(err)
	}
	var outer [2]int
	for i := range outer {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.SetNonblock(pair[0], true); err != nil {
			t.Fatal(err)
		}
		k.taps[i], outer[i] = tap{fd: pair[0], socket: -1}, pair[1]
	}
	k.up = true
	if err := c.carry(0, k, 1500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		unix.Close(outer[0])
		unix.Close(outer[1])
	})
	return c, outer[0], outer[1]
}

func TestCableDelaysAndKeepsOrder(t *testing.T) {
	const delay, jitter, most = 5 * time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond
	_, a, b := socketCable(t, &cable{delay: delay, jitter: jitter})
	for end := time.Now().Add(testwait.Limit); ; { // on a busy machine frames may take long, but not always
		mean := delayed(t, a, b, delay)
		if mean <= most {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("frames took %v in the mean, with delay %v and jitter %v; want at most %v", mean, delay, jitter, most)
		}
	}
}

// delayed sends frames through a cable, checks that they arrive in order and none
// before its time, and returns how long they took in the mean.
func delayed(t *testing.T, a, b int, delay time.Duration) time.Duration {
	t.Helper()
	const frames = 500
	sent := make([]time.Time, frames)
	go func() {
		frame := make([]byte, 60)
		for i := range sent {
			binary.BigEndian.PutUint16(frame[14:], uint16(i))
			sent[i] = time.Now()
			unix.Write(a, frame)
			if i%10 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
	}()
	buf := make([]byte, 2000)
	var total time.Duration
	for i := range sent {
		n, err := unix.Read(b, buf)
		if err != nil || n != 60 {
			t.Fatalf("read %d bytes, %v", n, err)
		}
		if got := int(binary.BigEndian.Uint16(buf[14:])); got != i {
			t.Fatalf("frame %d arrives after %d frames", got, i)
		}
		took := time.Since(sent[i])
		if took < delay {
			t.Fatalf("frame %d took %v, less than %v", i, took, delay)
		}
		total += took
	}
	return total / frames
}

func TestCableTagsAVLAN(t *testing.T) {
	_, sw, host := socketCable(t, &cable{vlan: 100})
	plain := append(bytes.Repeat([]byte{1}, 12), 8, 0)
	plain = append(plain, bytes.Repeat([]byte{7}, 50)...)
	tag := func(vid uint16) []byte {
		f := binary.BigEndian.AppendUint16(append([]byte{}, plain[:12]...), 0x8100)
		return append(binary.BigEndian.AppendUint16(f, vid), plain[12:]...)
	}
	buf := make([]byte, 2000)
	unix.Write(host, plain)
	if n, _ := unix.Read(sw, buf); !bytes.Equal(buf[:n], tag(100)) {
		t.Errorf("a host's frame arrives as %x", buf[:n])
	}
	// Untagged and another VLAN's frames are not for the host; priority bits are ignored.
	unix.Write(sw, plain)
	unix.Write(sw, tag(101))
	unix.Write(sw, tag(100|5<<13))
	if n, _ := unix.Read(host, buf); !bytes.Equal(buf[:n], plain) {
		t.Errorf("the host gets %x", buf[:n])
	}
}
