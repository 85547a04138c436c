package eval

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// usersPerBlock is how many users are summed up in one piece. It is fixed,
// because the order of floating-point additions depends on it.
const usersPerBlock = 256

// An Option changes how an evaluation runs, never its result.
type Option func(*options)

type options struct{ workers int }

// Workers sets the number of goroutines; the default, also for n < 1, is
// GOMAXPROCS.
func Workers(n int) Option { return func(o *options) { o.workers = n } }

// forBlocks calls work once for each block of users, on several goroutines at
// a time. worker is below the returned number of workers and belongs to one
// goroutine.
func forBlocks(users int, list []Option, start func(workers, blocks int), work func(worker, block, firstUser, endUser int)) {
	var o options
	for _, option := range list {
		option(&o)
	}
	if o.workers < 1 {
		o.workers = runtime.GOMAXPROCS(0)
	}
	blocks := (users + usersPerBlock - 1) / usersPerBlock
	workers := max(1, min(o.workers, blocks))
	start(workers, blocks)
	var next atomic.Int64
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			for {
				block := int(next.Add(1)) - 1
				if block >= blocks {
					return
				}
				work(worker, block, block*usersPerBlock, min(users, (block+1)*usersPerBlock))
			}
		})
	}
	group.Wait()
}
