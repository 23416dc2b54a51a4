package ids

import (
	"sync/atomic"
	"unsafe"
)

// The state of a slot is shared with the kernel.

func status(slot []byte) uint32 {
	return atomic.LoadUint32((*uint32)(unsafe.Pointer(unsafe.SliceData(slot))))
}

func setStatus(slot []byte, to uint32) {
	atomic.StoreUint32((*uint32)(unsafe.Pointer(unsafe.SliceData(slot))), to)
}
