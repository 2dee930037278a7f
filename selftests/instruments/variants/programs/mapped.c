/* The writing side of LTP-DDT's filesystem_tests: a source file is mapped, and written from in pieces
 * of BUFFER bytes, over and over until SIZE bytes are in FILE, which is not truncated; fsync is part
 * of the time. It says what it did in the words of dd, so that one parser reads both.
 *
 *     mapped SOURCE FILE SIZE BUFFER
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void stop(const char *what)
{
	perror(what);
	exit(1);
}

int main(int argc, char **argv)
{
	if (argc != 5) {
		fputs("usage: mapped SOURCE FILE SIZE BUFFER\n", stderr);
		return 2;
	}
	long size = atol(argv[3]), buffer = atol(argv[4]), done = 0, at = 0;
	int from = open(argv[1], O_RDONLY);
	struct stat source;

	if (from < 0 || fstat(from, &source))
		stop(argv[1]);
	char *bytes = mmap(NULL, source.st_size, PROT_READ, MAP_PRIVATE, from, 0);

	if (bytes == MAP_FAILED)
		stop("mmap");
	double start = now();
	int to = open(argv[2], O_WRONLY | O_CREAT, 0644);

	if (to < 0)
		stop(argv[2]);
	while (done < size) {
		long piece = buffer;

		if (piece > source.st_size - at)
			piece = source.st_size - at;
		if (piece > size - done)
			piece = size - done;
		if (write(to, bytes + at, piece) != piece)
			stop("write");
		done += piece;
		at = (at + piece) % source.st_size;
	}
	if (fsync(to) || close(to))
		stop("fsync");
	double took = now() - start;

	fprintf(stderr, "%ld bytes (mapped) copied, %.6f s, %.1f MB/s\n", done, took, done / took / 1e6);
	return 0;
}
