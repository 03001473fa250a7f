package vm

import (
	"bytes"
	"os"
	"strconv"
)

// resident reads how much memory the process holds that is its own: pages in use
// less those shared with files. Unlike the runtime's figures it needs nobody to
// collect, and it rises while a large allocation is still being filled.
type resident struct {
	file *os.File // nil where the system does not tell
	page int64
	buf  [128]byte
}

func newResident() *resident {
	f, err := os.Open("/proc/self/statm")
	if err != nil {
		return &resident{}
	}
	return &resident{file: f, page: int64(os.Getpagesize())}
}

// bytes is 0 where the system does not tell.
func (r *resident) bytes() int64 {
	if r.file == nil {
		return 0
	}
	n, err := r.file.ReadAt(r.buf[:], 0)
	if n == 0 && err != nil {
		return 0
	}
	fields := bytes.Fields(r.buf[:n]) // size resident shared …
	if len(fields) < 3 {
		return 0
	}
	all, err1 := strconv.ParseInt(string(fields[1]), 10, 64)
	shared, err2 := strconv.ParseInt(string(fields[2]), 10, 64)
	if err1 != nil || err2 != nil {
		return 0
	}
	return (all - shared) * r.page
}

func (r *resident) close() {
	if r.file != nil {
		r.file.Close()
	}
}
