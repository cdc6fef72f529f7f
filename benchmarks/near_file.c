/* What a region of near memory costs, filled by userfaultfd copy, or by one write and mapped (docs/live.md).

   gcc -O2 -o near_file benchmarks/near_file.c; ./near_file memfd|always WRITE_KB UNIT_KB, e.g. ./near_file always 2048 2048
   prints microseconds. "always" mounts a memory file system with huge pages, which needs root. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/mount.h>
#include <unistd.h>
#include <errno.h>
#include <time.h>
#include <linux/falloc.h>
static double now(){struct timespec t;clock_gettime(CLOCK_MONOTONIC,&t);return t.tv_sec*1e6+t.tv_nsec/1e3;}
int main(int argc,char**argv){
  const char*huge=argv[1]; unsigned long W=strtoul(argv[2],0,10)<<10, U=strtoul(argv[3],0,10)<<10; /* write unit, unit of measurement */
  int fd;
  if(!strcmp(huge,"memfd")) fd=memfd_create("x",0);
  else{
    int fs=syscall(SYS_fsopen,"tmpfs",0); 
    if(syscall(SYS_fsconfig,fs,1,"huge",huge,0)) perror("huge");
    syscall(SYS_fsconfig,fs,1,"size","100%",0);
    if(syscall(SYS_fsconfig,fs,6,0,0,0)) perror("create");
    int m=syscall(SYS_fsmount,fs,0,0); if(m<0)perror("fsmount");
    fd=openat(m,".",O_RDWR|O_TMPFILE,0600); if(fd<0)perror("open");
  }
  unsigned long N=256ul<<20; ftruncate(fd,N);
  int u=syscall(SYS_userfaultfd,O_CLOEXEC);
  struct uffdio_api api={0xAA,(1<<10)|(1<<12),0}; if(ioctl(u,UFFDIO_API,&api))perror("api");
  char*base=mmap((void*)0x700000000000ul,N,3,MAP_SHARED|MAP_FIXED,fd,0);
  struct uffdio_register r={{(unsigned long)base,N},7,0}; if(ioctl(u,UFFDIO_REGISTER,&r))perror("reg");
  char*b=aligned_alloc(2<<20,2<<20); madvise(b,2<<20,14); memset(b,7,2<<20);
  double copy=0,wr=0,cont=0,punch=0,punch2=0,touch=0,prot=0,unp=0; int n=0;
  for(int rep=0;rep<3;rep++) for(unsigned long at=0;at<N;at+=U){
    double t=now();
    struct uffdio_copy c={(unsigned long)base+at,(unsigned long)b,U,UFFDIO_COPY_MODE_WP,0};
    if(ioctl(u,UFFDIO_COPY,&c)){perror("copy");return 1;}
    double t1=now(); copy+=t1-t;
    fallocate(fd,3,at,U); punch+=now()-t1;
    t=now();
    for(unsigned long o=0;o<U;o+=W) if(pwrite(fd,b,W,at+o)!=W){perror("pwrite");return 1;}
    t1=now(); wr+=t1-t;
    struct uffdio_continue k={{(unsigned long)base+at,U},2,0};
    if(ioctl(u,UFFDIO_CONTINUE,&k)){perror("continue");return 1;}
    double t2=now(); cont+=t2-t1;
    volatile char s=0; for(unsigned long o=0;o<U;o+=4096) s+=base[at+o];
    double t3=now(); touch+=t3-t2;
    struct uffdio_writeprotect w={{(unsigned long)base+at,U},0}; ioctl(u,UFFDIO_WRITEPROTECT,&w); 
    double t4=now(); unp+=t4-t3; w.mode=1; ioctl(u,UFFDIO_WRITEPROTECT,&w); double t5=now(); prot+=t5-t4;
    fallocate(fd,3,at,U); punch2+=now()-t5; n++;
  }
  printf("%s write %luK unit %luK: COPY %.1f punch %.1f | pwrite %.1f CONTINUE %.1f touch %.1f unprotect %.1f protect %.1f punch %.1f\n",huge,W>>10,U>>10,copy/n,punch/n,wr/n,cont/n,touch/n,unp/n,prot/n,punch2/n);
}
